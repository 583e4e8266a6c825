// The lock behind MPI_Win_lock, in memory that ranks share.
#pragma once

#include <atomic>
#include <cstdint>

#include "node/flag.hpp"

namespace ropewalk::preload::onesided {

// A lock of readers and writers that lets them in as they come. All zeros, nobody holds it. Each
// takes a ticket; a reader's turn comes when all before it are in, a writer's when all before it
// have left.
class TicketLock {
 public:
  template <class Wait>
  void lock(const Wait& wait) {
    const std::uint64_t mine = tickets_.fetch_add(1, std::memory_order_seq_cst);
    // Acquire pairs with the releases of those that have left: what they wrote is there.
    wait([&] { return left_.load(std::memory_order_acquire) == mine; });
  }
  // While a writer is in, nobody else changes these two. A reader may come and leave as soon as the
  // first is stored: it has counted itself among those that left.
  void unlock() noexcept {
    const std::uint64_t next = left_.load(std::memory_order_relaxed) + 1;
    entered_.store(next, std::memory_order_release);  // pairs with lock_shared()
    leave();
  }
  template <class Wait>
  void lock_shared(const Wait& wait) {
    const std::uint64_t mine = tickets_.fetch_add(1, std::memory_order_seq_cst);
    // Acquire pairs with the release in unlock(), or in another reader, which has acquired that.
    wait([&] { return entered_.load(std::memory_order_acquire) == mine; });
    entered_.store(mine + 1, std::memory_order_release);
  }
  void unlock_shared() noexcept { leave(); }

 private:
  void leave() noexcept { left_.fetch_add(1, std::memory_order_release); }  // pairs with lock()

  node::Flag<std::uint64_t> tickets_;
  node::Flag<std::uint64_t> entered_;  // readers that are in, and all that have left before them
  node::Flag<std::uint64_t> left_;
};

}  // namespace ropewalk::preload::onesided
