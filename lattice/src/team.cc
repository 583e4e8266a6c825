#include "team.hpp"

namespace ropewalk::lattice {

namespace {

constexpr int spins = 20000;  // some 100 us: longer than the pauses between hops of a solver

inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Returns when `value` is no longer `old`.
void wait_while(std::atomic<unsigned>& value, unsigned old) {
  for (int i = 0; i < spins; ++i) {
    if (value.load(std::memory_order_acquire) != old) return;
    relax();
  }
  value.wait(old, std::memory_order_acquire);
}

}  // namespace

Team::Team(int threads) {
  for (int t = 1; t < threads; ++t) threads_.emplace_back([this, t] { work(t); });
}

Team::~Team() {
  if (threads_.empty()) return;
  action_ = nullptr;
  started_.fetch_add(1, std::memory_order_release);
  started_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Team::run(const std::function<void(int)>& action) {
  if (threads_.empty()) return action(0);
  action_ = &action;
  const unsigned goal =
      finished_.load(std::memory_order_relaxed) + static_cast<unsigned>(threads_.size());
  started_.fetch_add(1, std::memory_order_release);
  started_.notify_all();
  action(0);
  // Threads of other ranks may need this core: give way after a while.
  for (int i = 0; finished_.load(std::memory_order_acquire) != goal; ++i) {
    if (i < spins)
      relax();
    else
      std::this_thread::yield();
  }
}

void Team::work(int thread) {
  for (unsigned seen = 0;; ++seen) {
    wait_while(started_, seen);
    if (action_ == nullptr) return;
    (*action_)(thread);
    finished_.fetch_add(1, std::memory_order_release);
  }
}

}  // namespace ropewalk::lattice
