// Threads of a benchmark; see timed_threads.hpp. The barriers order action_: it is written before
// start_ and read after it.
#include "common/timed_threads.hpp"

#include <chrono>
#include <utility>

namespace ropewalk::bench {

double now_us() {
  const auto time = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::micro>(time).count();
}

double clock_reading_us() {
  static const double each = [] {
    constexpr int readings = 10000;
    const double begin = now_us();
    double end = begin;
    for (int i = 0; i < readings; ++i) end = now_us();
    return (end - begin) / readings;
  }();
  return each;
}

TimedThreads::TimedThreads(int threads)
    : size_(threads), start_(threads), end_(threads), errors_(static_cast<std::size_t>(threads)) {
  for (int thread = 1; thread < threads; ++thread) {
    threads_.emplace_back([this, thread] { work(thread); });
  }
}

TimedThreads::~TimedThreads() {
  action_ = nullptr;
  start_.arrive_and_wait();
  for (std::thread& thread : threads_) thread.join();
}

void TimedThreads::work(int thread) {
  for (;;) {
    start_.arrive_and_wait();
    if (action_ == nullptr) return;
    act(thread);
    end_.arrive_and_wait();
  }
}

double TimedThreads::run(const std::function<void(int)>& action) {
  action_ = &action;
  start_.arrive_and_wait();
  const double begin = now_us();
  act(0);
  end_.arrive_and_wait();
  const double time = now_us() - begin;
  for (std::exception_ptr& error : errors_) {
    if (error != nullptr) std::rethrow_exception(std::exchange(error, nullptr));
  }
  return time;
}

void TimedThreads::act(int thread) noexcept {
  try {
    (*action_)(thread);
  } catch (...) {
    errors_[static_cast<std::size_t>(thread)] = std::current_exception();
  }
}

}  // namespace ropewalk::bench
