// This file has the memory by which ranks of one node run a persistent collective again and again.
//
// When a rank starts a round, it copies what it sends into its own area, in its arena. When it
// completes the round, it reads what the others have copied into theirs. So a start waits for
// nobody, and a rank that has started keeps nobody waiting, whatever it does then. MPI demands
// both.
//
// An area has two rooms, which take turns. A rank fills a room again only after it has completed
// the round in between. For that it has waited until all others had started that round, and so had
// completed the round before, which was the last that read the room.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "node/peers.hpp"
#include "ropewalk/collectives.hpp"

namespace ropewalk::preload {

// What a rank sends as one block. Blocks that begin at the same address are copied once.
struct SentBlock {
  const std::byte* from;
  std::size_t bytes;
};

class RoundArea {
 public:
  // Takes the memory for a rank of the team that sends these blocks. Throws where there is none.
  RoundArea(Collectives& team, std::span<const SentBlock> sent);
  ~RoundArea();
  RoundArea(const RoundArea&) = delete;
  RoundArea& operator=(const RoundArea&) = delete;

  // Where the area lies in this rank's arena, as the others must be told.
  std::uint64_t offset() const noexcept;
  // Finds the areas of the others, from the offset() of each rank.
  void connect(std::span<const std::uint64_t> offsets) noexcept;
  // All ranks have connected and go on to use the areas: they stay until all ranks have left.
  void share() noexcept { shared_ = true; }

  // Returns how many bytes a rank sends as its block `number`, or -1 where it has no such block.
  std::int64_t bytes_of(int rank, std::size_t number) const noexcept;

  // Begins the round. A rank that cannot send its blocks says so instead.
  void fill(std::uint64_t round, std::span<const SentBlock> sent) noexcept;
  void refuse(std::uint64_t round) noexcept;
  // Whether this rank has begun the round, and whether it has refused it then.
  bool has_begun(int rank, std::uint64_t round) const noexcept;
  bool has_refused(int rank, std::uint64_t round) const noexcept;
  // Returns where a block of a rank that has begun the round lies.
  const std::byte* block(int rank, std::size_t number, std::uint64_t round) const noexcept;
  node::Peer& process(int rank) const noexcept { return *peers_[static_cast<std::size_t>(rank)]; }

 private:
  // The beginning of a room. Small blocks follow in the same line of the cache.
  struct RoomHeader {
    std::atomic<std::uint64_t> round{0};  // the last that was begun here
    std::uint64_t refused = 0;            // the last that was refused here
  };
  struct PlacedBlock {
    std::uint64_t at;  // behind the beginning of a room
    std::uint64_t bytes;
  };
  struct AreaHeader {
    std::atomic<int> left{0};  // so many of the others will never look at the area again
    std::uint64_t blocks = 0;
    std::uint64_t rooms_at = 0;
    std::uint64_t room_bytes = 0;
  };
  static constexpr std::size_t line = 64;  // bytes of a line of the cache

  const AreaHeader& header(int rank) const noexcept {
    return *reinterpret_cast<const AreaHeader*>(areas_[static_cast<std::size_t>(rank)]);
  }
  const PlacedBlock& placed(int rank, std::size_t number) const noexcept {
    return reinterpret_cast<const PlacedBlock*>(areas_[static_cast<std::size_t>(rank)] +
                                                line)[number];
  }
  std::byte* room(int rank, std::uint64_t round) const noexcept {
    const AreaHeader& of = header(rank);
    return areas_[static_cast<std::size_t>(rank)] + of.rooms_at + (round % 2) * of.room_bytes;
  }
  RoomHeader& room_header(int rank, std::uint64_t round) const noexcept {
    return *reinterpret_cast<RoomHeader*>(room(rank, round));
  }
  void begin(std::uint64_t round) noexcept;
  static void give_back_what_all_have_left() noexcept;

  int rank_;
  bool shared_ = false;
  std::vector<std::byte*> areas_;  // by rank, as this process maps them
  std::vector<std::shared_ptr<node::Peer>> peers_;
};

}  // namespace ropewalk::preload
