// The thread of a plan: sleeps until there is something to do, does it, and sleeps again.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "os/epoch.hpp"
#include "threads/thread.hpp"

namespace ropewalk::reduction {

class ReductionThread {
 public:
  // Starts the thread, which calls `work` after each wake(), as often as there is work. Throws
  // Error(system) where it cannot be started.
  explicit ReductionThread(std::function<void()> work);
  ~ReductionThread();  // after a last `work`
  ReductionThread(const ReductionThread&) = delete;
  ReductionThread& operator=(const ReductionThread&) = delete;

  // No allocation, no lock; a system call where the thread sleeps.
  void wake() noexcept { news_.advance(); }

 private:
  void run() noexcept;

  std::function<void()> work_;
  os::Epoch news_{os::wait_asleep};
  std::atomic<bool> ending_{false};
  threads::Thread thread_;
};

}  // namespace ropewalk::reduction
