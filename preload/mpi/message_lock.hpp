// Where threads of the program call MPI at the same time, one of them at a time looks at what the
// messages of this process are: at its table of requests, its slots, and what its probes have
// taken. A call holds this lock while it looks, and never while it waits for another rank.
//
// MPI may give the handle of a request that one thread has just completed to another thread. So
// whoever has MPI complete a request of the table holds the lock until its entry is gone.
#pragma once

#include <mutex>

#include "message_peers.hpp"

namespace ropewalk::preload::messages {

extern std::recursive_mutex& message_mutex;

// It costs some 20 ns where there are several threads, and otherwise a load.
class MessageLock {
 public:
  MessageLock() : lock_(message_mutex, std::defer_lock) {
    if (ranks.threads) lock_.lock();
  }
  // Takes the lock unless another thread has it.
  explicit MessageLock(std::try_to_lock_t) : lock_(message_mutex, std::defer_lock) {
    free_ = !ranks.threads || lock_.try_lock();
  }
  explicit operator bool() const noexcept { return free_; }
  void end() noexcept {
    if (lock_.owns_lock()) lock_.unlock();
  }

 private:
  std::unique_lock<std::recursive_mutex> lock_;
  bool free_ = true;
};

}  // namespace ropewalk::preload::messages
