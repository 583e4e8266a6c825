// A thread that runs the nonblocking collectives of one communicator, one after the other.
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <mutex>

#include "ropewalk/collectives.hpp"
#include "threads/thread.hpp"

namespace ropewalk {

namespace collectives {
class Worker;
}

struct CollectiveRequest::State {
  std::atomic<bool> done{false};  // released by the worker after `error` is set
  std::exception_ptr error;
  std::mutex mutex;
  std::condition_variable changed;
  collectives::Worker* without_thread = nullptr;  // whose calls run when they are waited for

  void finish(std::exception_ptr what);
  void wait();
};

}  // namespace ropewalk

namespace ropewalk::collectives {

class Worker {
 public:
  // refuse(owner) tells the others that this rank cannot make the call whose turn it is.
  Worker(void (*refuse)(void*) noexcept, void* owner) : refuse_(refuse), owner_(owner) {}
  ~Worker() { stop(); }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  struct Job {
    std::function<void()> call;  // empty: refused
    std::shared_ptr<CollectiveRequest::State> request;
  };
  using Prepared = std::list<Job>;  // of one

  // Starts the thread where there is none yet. Returns false where the system has none to give.
  bool start() noexcept;
  void stop() noexcept;  // runs what is queued, then ends the thread
  // All that can fail comes before anything is queued.
  static Prepared prepare(std::function<void()> call);
  // Starts the thread at the first call. Where there is none to be had, calls run in drain(), and
  // when their requests are waited for or tested.
  void enqueue(Prepared job) noexcept;
  // Takes the place of a call that could not be prepared: the others have started theirs.
  void enqueue_refusal() noexcept;
  // Waits until nothing is queued or running. One load when nothing ever was.
  void drain() {
    if (pending_.load(std::memory_order_acquire) != 0) wait_until_empty();
  }
  // Makes the thread call end(object), which ends this worker too, when nothing is queued or
  // running any more. False, without such a call, where nothing is queued or running now.
  bool hand_over(void (*end)(void*) noexcept, void* object) noexcept;

 private:
  bool start_locked() noexcept;
  void work() noexcept;
  void run_first(std::unique_lock<std::mutex>& lock) noexcept;
  void wait_until_empty();

  void (*refuse_)(void*) noexcept;
  void* owner_;
  std::atomic<int> pending_{0};  // queued and running; its release pairs with drain()'s acquire
  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Job> jobs_;
  std::list<Job> spare_ = std::list<Job>(1);  // room for a refusal, where there is no memory
  bool ending_ = false;
  bool running_here_ = false;  // in drain(), without a thread
  void (*end_)(void*) noexcept = nullptr;
  void* ended_ = nullptr;
  threads::Thread thread_;
};

// Ends a communicator without waiting for its nonblocking calls: their thread does it after them.
void retire(std::unique_ptr<Collectives>) noexcept;
// Waits until no worker of the process has anything to do, or is in the middle of ending a
// communicator. To be called before MPI ends.
void wait_for_workers() noexcept;

}  // namespace ropewalk::collectives
