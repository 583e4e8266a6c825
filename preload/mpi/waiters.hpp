// Those that wait for one word in memory that ranks share, so that they alone are woken for it.
#pragma once

#include <atomic>
#include <cstdint>

#include "node/waits.hpp"

namespace ropewalk::preload::onesided {

// All zeros at first. Ranks that sleep for another reason, as in a fence, are not woken for it.
class Waiters {
 public:
  template <class Ready>
  void until(node::Waits& waits, const Ready& ready) {
    if (ready()) return;
    const Counted counted(count_);
    waits.until(ready);
  }
  // To be called after the word was changed. As with sleepers, one that this load misses wakes by
  // itself a millisecond later.
  void wake(node::Waits& waits) const noexcept {
    if (count_.load(std::memory_order_relaxed) != 0) [[unlikely]] {
      waits.wake_sleepers();
    }
  }

 private:
  class Counted {
   public:
    explicit Counted(std::atomic<std::uint32_t>& count) noexcept : count_(count) {
      count_.fetch_add(1, std::memory_order_relaxed);
    }
    ~Counted() { count_.fetch_sub(1, std::memory_order_relaxed); }
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;

   private:
    std::atomic<std::uint32_t>& count_;
  };

  std::atomic<std::uint32_t> count_;
};

}  // namespace ropewalk::preload::onesided
