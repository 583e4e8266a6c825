// The blocks of a loop, dealt out to workers that steal from each other: one word a worker, no lock
// (Meadows and Ishikawa, "OpenMP Tasking and MPI in a Lattice QCD Benchmark", IWOMP 2017; Meadows
// et al. 2018).
//
// A worker's word holds the blocks [begin, end) that it has still to run. It takes the first by
// raising begin. A worker that has none left takes the upper half of the largest word of another
// worker, or its only block, by lowering end. It runs the first of the stolen blocks itself and
// puts the others into its own word, where they can be stolen again. Each of these steps is a
// compare-exchange of the whole word, so if two workers want the same block, one of them fails and
// tries again.
//
// Invariants
// 1. Within a loop no word returns to a value that it had with blocks in it. While block b lies in
//    words, it can be the first of one only by being raised to, and leaves that place only to be
//    run; a steal never moves the first block of a word into another word, since it leaves that
//    block where it is, or runs it. So a compare-exchange succeeds only if the word has not changed
//    since its load (no ABA), and each block is run once.
// 2. Only its owner writes a word without blocks, and no other worker exchanges one: a thief puts
//    stolen blocks into its own word by a plain store.
// 3. Loops take turns with two words a worker. A worker that leaves a loop fills the other word for
//    the next loop, which no worker reads before all have come to the barrier between the loops. A
//    worker that still looks for work in this loop finds this loop's words, which nobody fills
//    again before that worker, too, has come to the barrier. So one barrier between loops is
//    enough.
//
// Every access is relaxed: a word describes its blocks completely, the barriers around the loop
// order what the iterations read and write, and a stale value costs a failed exchange or, where it
// has no blocks, makes a worker leave early.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "schedule/word.hpp"

namespace ropewalk::schedule {

// 128 B: the pair of lines that the prefetcher of current x86 cores fetches together.
constexpr std::size_t stride = 128;

struct WorkerSlot {
  // Read and written by thieves as well as the owner.
  alignas(stride) Word range[2];        // of even and odd loops
  std::atomic<std::uint64_t> ready{0};  // loops that the owner has filled its words for
  std::atomic<int> place{0};            // NUMA node on which the owner runs
  // Only the owner uses it.
  alignas(stride) std::uint64_t loop = 0;  // that it is in, or comes to next
  std::uint64_t entered = 0;               // loops it has asked for a block
  std::uint64_t own = 0;                   // blocks it ran since the beginning: of its share,
  std::uint64_t stolen = 0;                // and others
};

class Ranges {
 public:
  static constexpr std::uint64_t most_blocks = 0xffffffffU;  // so that two fit a word

  // The last `sharing` of the workers begin with blocks, the others with none.
  Ranges(int workers, int sharing);

  int workers() const noexcept { return workers_; }
  // For loops of so many blocks, and to begin anew after one that was cut short. By one thread,
  // while no worker is in a loop.
  void reset(std::uint64_t blocks) noexcept;

  struct Taken {
    enum class Kind { block, done, absent } kind;
    std::uint32_t number;  // the block, or the worker that has not come to the last loop's end
  };
  // `done` takes the worker out of the loop: its next call is of the next loop.
  Taken take(int worker) noexcept;

  bool enters(int worker) noexcept;  // true once a loop
  void set_place(int worker, int node) noexcept;
  const WorkerSlot& slot(int worker) const noexcept {
    return slots_[static_cast<std::size_t>(worker)];
  }

 private:
  struct Victim {
    int worker = -1;
    std::uint64_t seen = 0;
  };
  WorkerSlot& at(int worker) noexcept { return slots_[static_cast<std::size_t>(worker)]; }
  std::uint64_t share(int worker) const noexcept;
  Taken steal(int worker) noexcept;
  Victim largest(int worker, int& absent) noexcept;
  Taken leave(int worker) noexcept;

  int workers_;
  int sharing_;
  std::uint64_t blocks_ = 0;
  std::unique_ptr<WorkerSlot[]> slots_;
};

}  // namespace ropewalk::schedule
