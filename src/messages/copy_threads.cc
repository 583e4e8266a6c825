#include "messages/copy_threads.hpp"

#include <sched.h>

#include <string>

#include "os/relax.hpp"

namespace ropewalk::messages {

CopyThreads::CopyThreads(int threads, bool crowded) : news_(crowded) {
  try {
    threads_.reserve(static_cast<std::size_t>(threads));
    for (int number = 1; number < threads; ++number) start_thread(number, threads);
  } catch (...) {
    stop_threads();
    throw;
  }
}

CopyThreads::~CopyThreads() { stop_threads(); }

void CopyThreads::start_thread(int number, int threads) {
  const threads::ThreadOptions options{
      .name = "rw-copy-" + std::to_string(number),
      .owner = "threads: number " + std::to_string(number + 1) + " of " + std::to_string(threads),
      .remedy = "ask for fewer"};
  threads_.emplace_back(options, [this] { live(); });
}

void CopyThreads::stop_threads() noexcept {
  leaving_.store(true, std::memory_order_relaxed);
  news_.advance();
  for (threads::Thread& thread : threads_) thread.join();
}

void CopyThreads::live() noexcept {
  while (true) {
    const std::uint32_t seen = news_.value();
    if (leaving_.load(std::memory_order_relaxed)) return;
    inside_.fetch_add(1, std::memory_order_seq_cst);
    if (open_.load(std::memory_order_seq_cst)) work_(object_);
    // Release: pairs with the acquire in run().
    inside_.fetch_sub(1, std::memory_order_seq_cst);
    news_.wait_beyond(seen);
  }
}

void CopyThreads::run(void (*work)(const void*), const void* object) noexcept {
  if (threads_.empty() || !fork_.same_process()) return work(object);
  work_ = work;
  object_ = object;
  open_.store(true, std::memory_order_seq_cst);
  news_.advance();
  work(object);
  open_.store(false, std::memory_order_seq_cst);
  // Acquire: what the threads have copied is in its place. A copy of one claim is what is left.
  for (int looks = 0; inside_.load(std::memory_order_seq_cst) != 0; ++looks) {
    looks % 64 == 63 ? static_cast<void>(sched_yield()) : os::relax();
  }
}

}  // namespace ropewalk::messages
