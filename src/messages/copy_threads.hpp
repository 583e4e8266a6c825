// The threads of a rank that copy a large message together: the multi-threaded copy of Potluri et
// al. (2013). The caller of the channel is one of them.
//
// All of them claim pieces of the transfer, as the two ranks do, until nobody finds any. Nobody
// waits for a thread that has not begun: the caller copies what no other thread has claimed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "messages/transfer.hpp"
#include "os/epoch.hpp"
#include "os/fork.hpp"
#include "threads/thread.hpp"

namespace ropewalk::messages {

class CopyThreads {
 public:
  static constexpr int most = 64;

  // `threads` counts the caller; `crowded` says that they outnumber the cores. Throws Error(system)
  // where they cannot be started.
  CopyThreads(int threads, bool crowded);
  ~CopyThreads();
  CopyThreads(const CopyThreads&) = delete;
  CopyThreads& operator=(const CopyThreads&) = delete;

  // Claims pieces and calls copy(Pieces) for each claim, on all threads at once, until no piece is
  // left to claim. Returns how many pieces were copied; what the threads wrote is visible then.
  template <class Copy>
  std::uint32_t copy(node::Flag<std::uint64_t>& unclaimed, End from, std::uint32_t at_once,
                     const Copy& copy) noexcept {
    std::atomic<std::uint32_t> copied{0};
    const auto work = [&]() noexcept {
      for (Pieces each = claim(unclaimed, from, at_once); each.count != 0;
           each = claim(unclaimed, from, at_once)) {
        copy(each);
        copied.fetch_add(each.count, std::memory_order_relaxed);
      }
    };
    run([](const void* object) { (*static_cast<const decltype(work)*>(object))(); }, &work);
    return copied.load(std::memory_order_relaxed);
  }

 private:
  void start_thread(int number, int threads);
  void stop_threads() noexcept;
  void live() noexcept;
  void run(void (*work)(const void*), const void* object) noexcept;

  os::ForkCheck fork_;
  // They are written before `open_` is set.
  void (*work_)(const void*) = nullptr;
  const void* object_ = nullptr;
  std::atomic<bool> leaving_{false};
  // A thread may begin to work while `open_` is set, and counts itself in `inside_` before it
  // looks. The caller resets `open_` before it looks whether anybody is inside. All four accesses
  // are sequentially consistent, so one of the two sees the other.
  alignas(128) std::atomic<bool> open_{false};
  alignas(128) std::atomic<int> inside_{0};
  os::Epoch news_;  // advanced when there is work, or the threads are to end
  std::vector<threads::Thread> threads_;
};

// How the copies of this rank are shared among threads.
struct Copiers {
  CopyThreads* threads = nullptr;  // null: the caller copies alone
  bool any = false;                // some rank of the channel has several; the same on all ranks
  std::size_t from_bytes = 0;      // messages of so many bytes and more are shared

  bool share(std::size_t bytes) const noexcept { return threads != nullptr && bytes >= from_bytes; }
  // The pieces that are claimed at once. A claim of half of what is left, as two ranks make it,
  // would leave the third thread too little. 64 claims give each of two ranks with 8 threads four,
  // so that a thread that comes late has its share.
  std::uint32_t pieces_at_once(std::size_t bytes, std::uint32_t pieces) const noexcept {
    return any && bytes >= from_bytes ? pieces / 64 + 1 : UINT32_MAX;
  }
};

}  // namespace ropewalk::messages
