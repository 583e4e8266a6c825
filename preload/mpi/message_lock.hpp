// Where threads of the program call MPI at the same time, one of them at a time looks at what the
// messages of this process are: at its table of requests, its slots, and what its probes have
// taken. A call holds this lock while it looks and while it copies what it has found, which ends
// without any act of a program, and gives it up while it waits.
//
// MPI may give the handle of a request that one thread has just completed to another thread. So
// whoever has MPI complete a request of the table holds the lock until its entry is gone.
#pragma once

#include <atomic>
#include <mutex>

#include "message_peers.hpp"
#include "os/relax.hpp"

namespace ropewalk::preload::messages {

extern std::recursive_mutex& message_mutex;

// A thread that waits when the program ends MPI must not call it any more. It stays until the
// process ends, as it would in MPI's own wait.
[[noreturn]] void stay() noexcept;

// It costs some 20 ns where there are several threads, and otherwise a load.
class MessageLock {
 public:
  MessageLock() : lock_(message_mutex, std::defer_lock) {
    if (ranks.threads && !lock_.try_lock()) take(lock_);
  }
  // Takes the lock unless another thread has it.
  explicit MessageLock(std::try_to_lock_t) : lock_(message_mutex, std::defer_lock) {
    free_ = !ranks.threads || lock_.try_lock();
  }
  // For calls that a thread may repeat until they find something.
  static MessageLock after_others() {
    let_others();
    MessageLock lock;
    lock.stay_if_ended();
    return lock;
  }
  void stay_if_ended() noexcept {
    if (!ranks.ended) return;
    end();
    stay();
  }
  explicit operator bool() const noexcept { return free_; }
  void end() noexcept {
    if (lock_.owns_lock()) lock_.unlock();
  }
  // For threads that take the lock again and again: lets others have it that want it, for some
  // 50 us at most.
  static void let_others() noexcept {
    for (int i = 0; i < most_looks && wanting.load(std::memory_order_relaxed) != 0; ++i) {
      os::relax();
    }
  }

 private:
  static constexpr int most_looks = 1000;  // of some 50 ns

  // A thread that sleeps for the lock would find it taken again when it wakes.
  static void take(std::unique_lock<std::recursive_mutex>& lock) {
    wanting.fetch_add(1, std::memory_order_relaxed);
    for (int i = 0; i < most_looks && !lock.owns_lock(); ++i) {
      os::relax();
      static_cast<void>(lock.try_lock());
    }
    if (!lock.owns_lock()) lock.lock();
    wanting.fetch_sub(1, std::memory_order_relaxed);
  }

  static inline std::atomic<int> wanting{0};  // threads that wait for the lock

  std::unique_lock<std::recursive_mutex> lock_;
  bool free_ = true;
};

}  // namespace ropewalk::preload::messages
