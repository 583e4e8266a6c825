// This file has the flags by which ranks of one node share the work of a round of a persistent
// collective, without waiting for each other's calls.
//
// The work is cut into tasks, and each task belongs to one rank. Once all ranks have begun the
// round, whoever completes it claims tasks and does them: its own first, then those of the others.
// So a rank that is alone does everything, and ranks that complete the round together share it. The
// round is over for all when every task is done, and nobody touches the memory of the others then.
//
// Counters run on over all rounds, so that nothing is ever reset. A rank begins a round only after
// it has seen the end of the round before. So nobody can claim tasks of the next round while
// somebody still looks for tasks of this one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "node/control.hpp"
#include "os/relax.hpp"

namespace ropewalk::preload {

// One rank's flags, in memory that all ranks have mapped.
struct alignas(node::flag_stride) RoundFlags {
  node::Flag<std::uint64_t> begun;  // rounds that this rank has begun
  // Of its tasks, over all rounds: those that somebody has claimed, and those that are done.
  alignas(node::flag_stride) node::Flag<std::uint64_t> claimed;
  alignas(node::flag_stride) node::Flag<std::uint64_t> done;
};

class RoundClaims {
 public:
  struct Part {
    RoundFlags* flags;
    std::uint64_t tasks;     // in each round
    std::uint64_t seen = 0;  // of its claims, when they were looked at last
  };
  // By rank. All ranks give the same numbers.
  RoundClaims(int rank, std::vector<Part> parts)
      : rank_(static_cast<std::size_t>(rank)), parts_(std::move(parts)) {}

  // Begins the next round, and waits for nobody: from now on others read what this rank sends, and
  // write what it receives.
  void begin() noexcept {
    begun_ = done_ = 0;
    looks_ = 0;
    is_over_ = false;
    // This release pairs with the acquire in all_have_begun().
    parts_[rank_].flags->begun.store(++round_, std::memory_order_release);
  }
  bool has_begun(int rank) const noexcept {
    return parts_[static_cast<std::size_t>(rank)].flags->begun.load(std::memory_order_acquire) >=
           round_;
  }

  // Does what is left to do, by run(rank, number of a task of that rank), and returns true once the
  // round is over. It never waits. Unless it helps at once, it leaves the tasks of others to them
  // while these go on: whoever does a task has the result in its caches, and takes the lines of the
  // receive buffer from the caches of their owner.
  template <class Run>
  bool advance(const Run& run, bool at_once = true) {
    if (is_over_) return true;
    if (!all_have_begun()) return false;
    // The others have looked at these lines, which this rank writes next.
    if (looks_ == 0) os::prefetch_for_writing(&parts_[rank_].flags->done);
    work_for(rank_, run);
    // To look at the claims of others takes the line from them that they write next.
    const bool asks = at_once || ++looks_ % patience == 0;
    for (std::size_t i = 1; asks && i < parts_.size(); ++i) {
      const std::size_t rank = (rank_ + i) % parts_.size();
      if (at_once || stands_still(parts_[rank])) work_for(rank, run);
    }
    is_over_ = all_is_done();
    if (is_over_) os::prefetch_for_writing(&parts_[rank_].flags->begun);
    return is_over_;
  }

 private:
  bool all_have_begun() noexcept {
    while (begun_ < parts_.size() && has_begun(static_cast<int>(begun_))) ++begun_;
    return begun_ == parts_.size();
  }

  // A look takes some 10 ns, and a task a few microseconds.
  static constexpr unsigned patience = 500;

  // Nobody has claimed a task of this rank in this round, or since the last look at its claims.
  bool stands_still(Part& part) const noexcept {
    const std::uint64_t claimed = part.flags->claimed.load(std::memory_order_relaxed);
    const bool is_new = claimed != std::exchange(part.seen, claimed);
    return !is_new || claimed == (round_ - 1) * part.tasks;
  }

  template <class Run>
  void work_for(std::size_t rank, const Run& run) {
    const Part& part = parts_[rank];
    const std::uint64_t end = round_ * part.tasks;
    std::uint64_t done = 0;
    // An exchange succeeds on the newest value only, so that this orders nothing else.
    for (std::uint64_t seen = part.flags->claimed.load(std::memory_order_relaxed); seen < end;) {
      if (!part.flags->claimed.compare_exchange_weak(seen, seen + 1, std::memory_order_relaxed)) {
        continue;
      }
      run(static_cast<int>(rank), seen + part.tasks - end);
      ++seen;
      ++done;
    }
    // This release pairs with the acquire in all_is_done(), through those of others as well.
    if (done != 0) part.flags->done.fetch_add(done, std::memory_order_release);
  }

  bool all_is_done() noexcept {
    for (; done_ < parts_.size(); ++done_) {
      const Part& part = parts_[done_];
      const std::uint64_t done = part.flags->done.load(std::memory_order_acquire);
      if (done < round_ * part.tasks) return false;
    }
    return true;
  }

  std::size_t rank_;
  std::vector<Part> parts_;
  std::uint64_t round_ = 0;
  std::size_t begun_ = 0;  // the ranks below have begun the round
  std::size_t done_ = 0;   // the tasks of the ranks below are done
  unsigned looks_ = 0;
  bool is_over_ = false;
};

}  // namespace ropewalk::preload
