// A few threads that do one thing together, again and again, and how long it took.
#pragma once

#include <barrier>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

namespace ropewalk::bench {

double now_us();            // steady clock, microseconds
double clock_reading_us();  // what one call of now_us() takes

// The caller is thread 0. Threads sleep in the barrier between runs.
class TimedThreads {
 public:
  explicit TimedThreads(int threads);
  ~TimedThreads();
  TimedThreads(const TimedThreads&) = delete;
  TimedThreads& operator=(const TimedThreads&) = delete;

  int size() const noexcept { return size_; }
  // Runs action(thread) on all threads; microseconds from the common start to the end of the last.
  // Rethrows what an action threw, once all threads are done.
  double run(const std::function<void(int)>& action);

 private:
  void work(int thread);
  void act(int thread) noexcept;

  int size_;
  std::barrier<> start_;
  std::barrier<> end_;
  const std::function<void(int)>* action_ = nullptr;  // null: the threads end
  std::vector<std::exception_ptr> errors_;            // one a thread
  std::vector<std::thread> threads_;
};

}  // namespace ropewalk::bench
