// A thread that runs the nonblocking collectives of one communicator, one after the other.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "ropewalk/collectives.hpp"

namespace ropewalk {

struct CollectiveRequest::State {
  std::atomic<bool> done{false};  // released by the worker after `error` is set
  std::exception_ptr error;
  std::mutex mutex;
  std::condition_variable changed;

  void finish(std::exception_ptr what);
  void wait();
};

}  // namespace ropewalk

namespace ropewalk::collectives {

class Worker {
 public:
  Worker() = default;
  ~Worker();  // runs what is queued, then ends the thread
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Starts the thread at the first call.
  std::shared_ptr<CollectiveRequest::State> enqueue(std::function<void()> call);
  // Waits until nothing is queued or running. One load when nothing ever was.
  void drain() {
    if (pending_.load(std::memory_order_acquire) != 0) wait_until_empty();
  }

 private:
  struct Job {
    std::function<void()> call;
    std::shared_ptr<CollectiveRequest::State> request;
  };
  void work();
  void wait_until_empty();

  std::atomic<int> pending_{0};  // queued and running; its release pairs with drain()'s acquire
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace ropewalk::collectives
