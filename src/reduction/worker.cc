#include "reduction/worker.hpp"

#include <utility>

#include "os/cores.hpp"
#include "os/futex.hpp"

namespace ropewalk::reduction {

Worker::Worker(std::function<void()> work) : work_(std::move(work)) {
  // Every core of the process: the caller may be bound to the one it computes on.
  thread_ = threads::Thread({.name = "rw-reduce",
                             .cores = os::process_cores(),
                             .owner = "plan: its thread",
                             .remedy = "ask for no thread"},
                            [this] { run(); });
}

Worker::~Worker() {
  ending_.store(true, std::memory_order_release);
  wake();
  thread_.join();
}

void Worker::wake() noexcept {
  // Sequentially consistent with run(): either we see it asleep, or it sees the news.
  news_.fetch_add(1, std::memory_order_seq_cst);
  if (asleep_.load(std::memory_order_seq_cst) != 0) os::futex_wake(news_);
}

void Worker::run() noexcept {
  std::uint32_t seen = 0;
  for (;;) {
    const std::uint32_t now = news_.load(std::memory_order_seq_cst);
    if (now != seen) {
      seen = now;
      work_();
      continue;
    }
    if (ending_.load(std::memory_order_acquire)) return;
    asleep_.store(1, std::memory_order_seq_cst);
    os::futex_wait(news_, seen);  // returns at once where there are news by now
    asleep_.store(0, std::memory_order_relaxed);
  }
}

}  // namespace ropewalk::reduction
