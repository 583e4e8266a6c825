#include "reduction/reduction_thread.hpp"

#include <utility>

#include "os/cores.hpp"

namespace ropewalk::reduction {

ReductionThread::ReductionThread(std::function<void()> work) : work_(std::move(work)) {
  // Every core of the process: the caller may be bound to the one it computes on.
  thread_ = threads::Thread({.name = "rw-reduce",
                             .cores = os::process_cores(),
                             .owner = "plan: its thread",
                             .remedy = "ask for no thread"},
                            [this] { run(); });
}

ReductionThread::~ReductionThread() {
  ending_.store(true, std::memory_order_release);
  wake();
  thread_.join();
}

void ReductionThread::run() noexcept {
  std::uint32_t seen = 0;
  for (;;) {
    const std::uint32_t now = news_.value();
    if (now != seen) {
      seen = now;
      work_();
      continue;
    }
    if (ending_.load(std::memory_order_acquire)) return;
    news_.wait_beyond(seen);
  }
}

}  // namespace ropewalk::reduction
