// This file has the memory by which ranks of one node carry out nonblocking collectives without a
// thread.
//
// Each rank has a log in its arena: a chain of records, one for each collective that it has
// started, in the order of the starts, which is the same on all ranks. A record holds a copy of
// what the rank sends. So a start waits for nobody, and a rank that has started keeps nobody
// waiting, whatever it does then. MPI demands both. Whoever completes a collective follows the
// chains of the others to their records of it, and reads them.
//
// The owner uses a record again once nobody will look at it any more. For that each rank tells each
// owner how far it has passed through the owner's chain: to the first collective that it has not
// completed, and no further than it has followed the chain.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "node/control.hpp"
#include "round_area.hpp"
#include "shared_area.hpp"

namespace ropewalk::preload {

class RoundLog {
 public:
  // A block that a rank has sent, as this process maps it.
  struct Found {
    const std::byte* data;  // null: it has sent no such block
    std::size_t bytes;
  };

  // Takes the memory for a rank of the team. Throws where there is none.
  explicit RoundLog(Collectives& team);
  // Every round of this rank is over, or nobody waits for it any more.
  ~RoundLog();
  RoundLog(const RoundLog&) = delete;
  RoundLog& operator=(const RoundLog&) = delete;

  SharedArea& memory() noexcept { return memory_; }
  // Once the memory is connected: finds the chains of all ranks.
  void connect() noexcept;

  // Begins this rank's next round, and returns its number; 0 where there is no memory for what it
  // sends, and it has refused the round.
  std::uint64_t begin(std::span<const SentBlock> sent) noexcept;
  void refuse() noexcept;

  // Follows the chains as far as this rank has begun rounds.
  void look() noexcept;
  // What follows is for rounds that this rank has begun and not left. Whether the record of a rank
  // has been found, and whether there will never be one.
  bool has(int rank, std::uint64_t round) noexcept { return record(rank, round) != nullptr; }
  bool has_refused(int rank, std::uint64_t round) noexcept;
  Found find(int rank, std::uint64_t round, std::size_t number) noexcept;
  // Whether a rank has begun a round that is not many rounds older. A rank that does not receive
  // from it would otherwise go on for ever, and need memory for all its records. `bytes`: what this
  // rank sends.
  bool is_near(int rank, std::uint64_t round, std::size_t bytes) const noexcept;
  // This rank, which has read so many bytes, will never look at the round again.
  void leave(std::uint64_t round, std::size_t bytes) noexcept;

 private:
  struct Placed {
    std::uint64_t at;  // behind the beginning of the record
    std::uint64_t bytes;
  };
  // The beginning of a record. Small blocks follow in the same line of the cache. Where all blocks
  // are the same one, `placed` is that; otherwise the places of all of them follow.
  struct Record {
    std::atomic<std::uint64_t> next{0};  // in the arena; 0: none yet
    std::uint64_t round = 0;
    std::uint64_t blocks = 0;  // 0: the same for all ranks
    Placed placed{};
    std::uint64_t capacity = 0;  // bytes, of the record as a whole
  };
  // The beginning of the log of a rank.
  struct Header {
    Record first;  // before all rounds
    alignas(node::flag_stride) std::atomic<std::uint64_t> begun{0};
    std::atomic<std::uint64_t> refused{0};  // the last round that was
  };
  // Where this rank is in the chain of another.
  struct Cursor {
    const Record* record = nullptr;
    std::uint64_t told = 0;  // what `passed` says
  };
  struct Round {
    std::uint64_t number;
    std::vector<const Record*> records;  // by rank; null: not found yet
    bool over = false;
  };
  static std::size_t bytes_for(int ranks);

  Header& header(int rank) const noexcept { return *reinterpret_cast<Header*>(memory_.of(rank)); }
  // By rank: the records of older rounds in that one's chain are not looked at any more by `rank`.
  // They follow its header.
  std::atomic<std::uint64_t>* passed(int rank) const noexcept {
    return reinterpret_cast<std::atomic<std::uint64_t>*>(&header(rank) + 1);
  }
  Round* find_round(std::uint64_t number) noexcept;
  const Record* record(int rank, std::uint64_t round) noexcept {
    return find_round(round)->records[static_cast<std::size_t>(rank)];
  }
  std::uint64_t first() const noexcept {
    return rounds_.empty() ? begun_ + 1 : rounds_.front().number;
  }
  std::size_t own() const noexcept { return static_cast<std::size_t>(memory_.rank()); }
  std::uint64_t passed_here(int rank) const noexcept;
  void tell_passed(std::uint64_t least) noexcept;
  Record* write(std::span<const SentBlock> sent);
  Record* take(std::size_t bytes);
  Record* take_free(std::size_t bytes) noexcept;
  void collect_free();

  SharedArea memory_;
  std::vector<Cursor> cursors_;  // by rank
  std::uint64_t begun_ = 0;
  std::deque<Round> rounds_;   // that this rank has begun, and not left, but for some between
  Record* last_;               // of this rank's chain
  std::deque<Record*> used_;   // this rank's own, in their order
  std::vector<Record*> free_;  // the last of them was used last
  std::size_t free_bytes_ = 0;
};

// Collective. The log of this rank, or null on all ranks where one of them is not able, or has no
// memory. It outlives the team while somebody has it.
std::shared_ptr<RoundLog> make_round_log(Collectives& team, bool able);

}  // namespace ropewalk::preload
