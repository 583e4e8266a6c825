#include "reduction/worker.hpp"

#include <pthread.h>

#include <string>
#include <system_error>
#include <utility>

#include "mpi/mpi.hpp"
#include "os/futex.hpp"
#include "os/signals.hpp"
#include "ropewalk/error.hpp"
#include "transport/cores.hpp"

namespace ropewalk::reduction {

Worker::Worker(std::function<void()> work) : work_(std::move(work)) {
  const os::SignalsBlocked blocked;
  try {
    // Every core of the process: the caller may be bound to the one it computes on.
    thread_ =
        std::thread([this, identity = mpi::thread_identity(), cores = transport::process_cores()] {
          mpi::adopt_thread_identity(identity);
          transport::run_this_thread_on(cores);
          pthread_setname_np(pthread_self(), "rw-reduce");
          run();
        });
  } catch (const std::system_error& error) {
    throw Error(ErrorCode::system, std::string("plan: its thread cannot be started (") +
                                       error.what() + "); raise `ulimit -u` or ask for no thread");
  }
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
