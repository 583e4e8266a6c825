// How threads of a process wait for each other: for a number that goes up, or for all to come to
// one place.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "os/waiting.hpp"

namespace ropewalk::os {

// An epoch is a number that only goes up, and the threads that wait until it does.
class Epoch {
 public:
  explicit Epoch(const WaitPolicy& policy) noexcept : policy_(&policy) {}
  // It is for threads that share work; `crowded` says that threads outnumber cores.
  explicit Epoch(bool crowded) noexcept
      : Epoch(crowded ? wait_for_threads_crowded : wait_for_threads) {}
  // Acquire pairs with the release of advance().
  std::uint32_t value() const noexcept { return value_.load(std::memory_order_acquire); }
  void advance() noexcept;
  // Does the same, but does not wake threads that sleep.
  void advance_quietly() noexcept { value_.fetch_add(1, std::memory_order_seq_cst); }
  // Returns when the number is no longer `before`.
  void wait_beyond(std::uint32_t before) noexcept;
  // Sleeps until then, for at most that long. For a caller with a wait of its own.
  void sleep(std::uint32_t before, std::int64_t longest_ns) noexcept;

 private:
  const WaitPolicy* policy_;
  alignas(128) std::atomic<std::uint32_t> value_{0};
  alignas(128) std::atomic<std::uint32_t> sleepers_{0};
};

// All of `size` threads come to the barrier before any goes on. It is used again and again.
class Barrier {
 public:
  Barrier(int size, bool crowded) noexcept
      : size_(static_cast<std::uint32_t>(size)), passed_(crowded) {}
  void arrive_and_wait() noexcept { arrive_and_wait(turn()); }
  // Releases all waiting threads, for a team that gives up. A thread that reads turn(), then finds
  // that the team has not given up, then arrives, is released as well. Afterwards no thread may
  // arrive before reset().
  void release() noexcept { passed_.advance(); }
  std::uint32_t turn() const noexcept { return passed_.value(); }
  void arrive_and_wait(std::uint32_t turn) noexcept;
  void reset() noexcept { arrived_.store(0, std::memory_order_relaxed); }

 private:
  std::uint32_t size_;
  alignas(128) std::atomic<std::uint32_t> arrived_{0};
  Epoch passed_;
};

}  // namespace ropewalk::os
