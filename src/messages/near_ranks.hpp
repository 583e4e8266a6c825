// The ranks of a communicator that share this rank's node, and what they show each other.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "channel/attachments.hpp"
#include "channel/peer_memory.hpp"
#include "messages/board.hpp"
#include "mpi/mpi.hpp"
#include "node/team.hpp"

namespace ropewalk::messages {

class NearRanks {
 public:
  // Collective over `comm`, whose ranks are on one node. Returns null on every rank where they
  // cannot map each other's memory; `reason` then says why. `ranks`: theirs in the whole
  // communicator, which has `all` ranks.
  static std::unique_ptr<NearRanks> create(mpi::Comm comm, std::vector<int> ranks, int all,
                                           channel::PeerMemory::Worth, std::string& reason);
  ~NearRanks();
  NearRanks(const NearRanks&) = delete;
  NearRanks& operator=(const NearRanks&) = delete;

  node::Team& team() noexcept { return *team_; }
  channel::PeerMemory& memory() noexcept { return memory_; }
  int place() const noexcept { return team_->rank(); }  // of this rank among them
  int size() const noexcept { return team_->size(); }
  // The table is by rank of the communicator; it has -1 for one that is not near.
  int place_of(int rank) const noexcept { return places_[static_cast<std::size_t>(rank)]; }
  int rank_at(int place) const noexcept { return ranks_[static_cast<std::size_t>(place)]; }

  // Returns this rank's line for the rank at a place, and that rank's line for this one.
  PeerLine& own_line(int place) noexcept { return own_->lines()[place]; }
  PeerLine& peer_line(int place) noexcept { return board(place)->lines()[team_->rank()]; }
  std::byte* base(int place) const noexcept { return team_->base(place); }
  // Whether the rank at a place has ended its channel.
  bool has_ended(int place) noexcept {
    // Pairs with the release in end(): what it had sent before is there.
    return board(place)->ended.load(std::memory_order_acquire) != 0;
  }
  [[noreturn]] void throw_dead(int place) const;
  // To be called when the kernel has refused a copy from or to this rank. Its death is the better
  // answer, and may take a moment to be known. Throws it, or returns when there is none.
  void explain_refusal(int place) const;
  // Tells the others that this rank has ended its channel.
  void end() noexcept;
  // Memory of the arena, given back once all others have ended their channels; null is allowed.
  void keep(void* memory) noexcept;

 private:
  NearRanks(std::unique_ptr<node::Team> team, std::vector<int> ranks, int all,
            channel::PeerMemory::Worth worth);
  bool is_here() const noexcept;  // false in a child of fork
  Board* board(int place) noexcept { return boards_[static_cast<std::size_t>(place)]; }

  std::unique_ptr<node::Team> team_;
  std::vector<int> ranks_;
  std::vector<int> places_;
  channel::PeerMemory memory_;
  Board* own_ = nullptr;
  std::vector<Board*> boards_;
  std::vector<void*> kept_;
  std::vector<std::shared_ptr<node::Peer>> peers_;  // by place
};

}  // namespace ropewalk::messages
