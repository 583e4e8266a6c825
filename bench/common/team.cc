// Threads of a benchmark; see team.hpp. The barriers order action_: it is written before start_ and
// read behind it.
#include "common/team.hpp"

#include <chrono>

namespace ropewalk::bench {

double now_us() {
  const auto time = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::micro>(time).count();
}

Team::Team(int threads) : size_(threads), start_(threads), end_(threads) {
  for (int thread = 1; thread < threads; ++thread) {
    threads_.emplace_back([this, thread] { work(thread); });
  }
}

Team::~Team() {
  action_ = nullptr;
  start_.arrive_and_wait();
  for (std::thread& thread : threads_) thread.join();
}

void Team::work(int thread) {
  for (;;) {
    start_.arrive_and_wait();
    if (action_ == nullptr) return;
    (*action_)(thread);
    end_.arrive_and_wait();
  }
}

double Team::run(const std::function<void(int)>& action) {
  action_ = &action;
  start_.arrive_and_wait();
  const double begin = now_us();
  action(0);
  end_.arrive_and_wait();
  return now_us() - begin;
}

}  // namespace ropewalk::bench
