// The buckets of a plan that have been started, in their order, and how far each has come.
//
// Only the caller starts buckets. They are reduced one after the other by the thread that has the
// turn: the plan's thread, or the caller while it waits. A bucket's data pass from the caller to
// that thread by the release of `tail_`, and back by the release of its `finished`.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <utility>
#include <vector>

#include "os/epoch.hpp"

namespace ropewalk::reduction {

class BucketQueue {
 public:
  explicit BucketQueue(int buckets);

  // By the caller: a bucket is started that is not under way, so the queue never overflows.
  void push(int bucket) noexcept;
  std::uint64_t pushed() const noexcept { return tail_.load(std::memory_order_relaxed); }
  std::uint64_t rounds_of(int bucket) const noexcept { return progress(bucket).started; }

  bool under_way(int bucket) const noexcept {
    // Pairs with the release in complete().
    return progress(bucket).finished.load(std::memory_order_acquire) != progress(bucket).started;
  }
  bool any_under_way() const noexcept;
  // Sleeps until a bucket is complete, at most so long, unless this one is already.
  void sleep_until_complete(int bucket, std::int64_t longest_ns) noexcept;
  // Throws the error that the last round of the bucket has ended with, once.
  void rethrow(int bucket);

  // Calls reduce(bucket) for the next bucket. Returns false where there is none, or, unless the
  // caller waits for the turn, where another thread has it.
  template <class Reduce>
  bool reduce_next(bool wait_for_turn, Reduce&& reduce) noexcept {
    std::unique_lock turn(turn_, std::defer_lock);
    if (wait_for_turn) turn.lock();
    if (!wait_for_turn && !turn.try_lock()) return false;
    const std::uint64_t head = head_.load(std::memory_order_relaxed);
    if (head == tail_.load(std::memory_order_acquire)) return false;
    const int bucket = queue_[head % queue_.size()];
    try {
      reduce(bucket);
    } catch (...) {
      progress(bucket).error = std::current_exception();
    }
    head_.store(head + 1, std::memory_order_relaxed);
    complete(bucket);
    return true;
  }

  // Gives up the buckets that nobody has begun, and calls refuse() for each.
  template <class Refuse>
  void give_up(Refuse&& refuse) noexcept {
    const std::lock_guard turn(turn_);
    for (; head_.load(std::memory_order_relaxed) != pushed();
         head_.fetch_add(1, std::memory_order_relaxed)) {
      refuse();
    }
  }

 private:
  struct Progress {
    std::uint64_t started = 0;               // rounds, counted by the caller
    std::atomic<std::uint64_t> finished{0};  // rounds, by whoever reduced it
    std::exception_ptr error;                // of the last round, until it is rethrown
  };
  void complete(int bucket) noexcept;
  Progress& progress(int bucket) noexcept { return progress_[static_cast<std::size_t>(bucket)]; }
  const Progress& progress(int bucket) const noexcept {
    return progress_[static_cast<std::size_t>(bucket)];
  }

  std::vector<Progress> progress_;  // one a bucket
  std::vector<int> queue_;
  std::atomic<std::uint64_t> tail_{0};  // written by the caller
  std::atomic<std::uint64_t> head_{0};  // written under turn_
  std::mutex turn_;
  os::Epoch completions_{os::wait_for_reduction};
};

}  // namespace ropewalk::reduction
