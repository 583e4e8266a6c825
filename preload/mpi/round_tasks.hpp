// This file has the rounds of persistent collectives whose data lie in the arenas, so that every
// rank reads what the others send where it lies, and writes what they receive. Nothing is copied at
// the start; the ranks share the work (round_claims.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "collectives/operation.hpp"
#include "collectives/pattern.hpp"
#include "kernels/kernels.hpp"
#include "round_area.hpp"
#include "round_claims.hpp"
#include "shared_area.hpp"

namespace ropewalk::preload {

// A block that a rank receives in a round.
struct ReceivedBlock {
  int from;
  std::size_t number;  // among the blocks that `from` sends
  std::byte* to;
  std::size_t bytes;
};

// A part of a reduction whose inputs are those of all ranks, or of a broadcast.
struct SharedReduction {
  static constexpr int everybody = -1;
  const std::byte* send;      // this rank's elements
  std::size_t send_bytes;     // of all of them
  std::byte* receive;         // where this rank's result goes
  std::size_t receive_bytes;  // 0 where it gets none
  // The elements that belong to this rank's tasks, in bytes behind `send` and `receive`.
  std::size_t from;
  std::size_t to;
  std::size_t bytes;
  int target;  // the rank that gets the result of these, or everybody
  // None in a broadcast, whose only input is that of `root`, and which the others get.
  std::optional<collectives::Operation> operation;
  int root = -1;
};

// What a rank shares with the others: either blocks or a reduction. Where the work is `typed`, the
// elements of each block are of a type of their own, and lie where the parts say.
struct RoundWork {
  std::span<const SentBlock> sent;
  std::span<const ReceivedBlock> received;
  const SharedReduction* reduction = nullptr;
  bool typed = false;
  std::span<const collectives::TypedPart> sent_parts{};
  std::span<const collectives::TypedPart> received_parts{};

  // Whether the other ranks reach all of it.
  bool is_mapped() const noexcept;
  // The bytes that this rank sends or receives, whichever are more.
  std::size_t bytes() const noexcept;
};

class RoundTasks {
 public:
  // Takes the memory for a rank of the team. Throws where there is none.
  RoundTasks(Collectives& team, const RoundWork&);

  SharedArea& memory() noexcept { return memory_; }
  // Once the memory is connected: finds what the others send. Returns false where they do not send
  // what this rank receives. The others may begin once all ranks have come so far.
  bool connect(const RoundWork&);

  void begin() noexcept { claims_->begin(); }
  bool has_begun(int rank) const noexcept { return claims_->has_begun(rank); }
  // Does what is left to do, and returns true once the round is over (RoundClaims::advance()).
  bool advance(bool at_once);

 private:
  // A task copies, or combines the inputs of all ranks.
  struct Task {
    // Bytes behind the beginning of the arena of `source` and of the task's rank; in a reduction,
    // of each input and of each result; of typed work, numbers of descriptions of either rank.
    std::uint64_t from;
    std::uint64_t to;
    std::uint64_t bytes;
    std::int64_t source;
  };
  struct PlacedBlock {
    std::uint64_t at;  // in the arena
    std::uint64_t bytes;
  };
  // Where the elements of a block lie, for all ranks: those of the blocks that a rank sends, and
  // then of those that it receives. The strided blocks of all follow.
  struct Description {
    std::int64_t at;  // in the arena; its beginning may lie outside, its data do not
    std::int64_t count;
    std::int64_t extent;
    std::uint64_t first;  // of its strided blocks
    std::uint64_t blocks;
  };
  // The beginning of an area. The blocks that the rank sends follow, its tasks, and, of typed work,
  // the descriptions.
  struct Board {
    RoundFlags flags;
    std::uint64_t blocks = 0;
    std::uint64_t tasks = 0;
    std::uint64_t send = 0;  // of a reduction, in the arena
    std::uint64_t receive = 0;
    std::int64_t target = 0;
    std::uint64_t described = 0;  // blocks
  };
  static std::size_t bytes_for(const RoundWork&);

  Board& board(int rank) const noexcept { return *reinterpret_cast<Board*>(memory_.of(rank)); }
  PlacedBlock* blocks(int rank) const noexcept {
    return reinterpret_cast<PlacedBlock*>(memory_.of(rank) + sizeof(Board));
  }
  Task* tasks(int rank) const noexcept {
    return reinterpret_cast<Task*>(blocks(rank) + board(rank).blocks);
  }
  Description* descriptions(int rank) const noexcept {
    return reinterpret_cast<Description*>(tasks(rank) + board(rank).tasks);
  }
  mpi::StridedBlock* strided(int rank) const noexcept {
    return reinterpret_cast<mpi::StridedBlock*>(descriptions(rank) + board(rank).described);
  }
  collectives::StridedElements elements(int rank, std::uint64_t number) const noexcept;
  std::vector<RoundClaims::Part> parts() const;
  void describe(const RoundWork&) noexcept;
  void describe_parts(const RoundWork&) noexcept;
  bool add_copies(std::span<const ReceivedBlock>) noexcept;
  bool add_typed_copies(std::span<const ReceivedBlock>) noexcept;
  const PlacedBlock* sent_to(const ReceivedBlock&) const noexcept;
  void add_parts(const SharedReduction&) noexcept;
  void run(int rank, std::uint64_t number);
  void combine(const Task&, int target);
  void push(const Task&);

  std::size_t piece_;
  bool typed_;
  kernels::Stores stores_;
  std::optional<collectives::Operation> operation_;
  int root_ = -1;  // of a broadcast
  SharedArea memory_;
  std::optional<RoundClaims> claims_;
  std::vector<std::byte*> arenas_;  // by rank
  // The first bytes of each rank's elements and result, and what a task makes of them.
  std::vector<const std::byte*> sent_;
  std::vector<std::byte*> received_;
  std::vector<const void*> inputs_;
  std::vector<void*> outputs_;
};

}  // namespace ropewalk::preload
