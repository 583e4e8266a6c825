#include "collectives/worker.hpp"

#include <utility>

#include "mpi/mpi.hpp"
#include "os/signals.hpp"

namespace ropewalk {

void CollectiveRequest::State::finish(std::exception_ptr what) {
  const std::lock_guard lock(mutex);
  error = std::move(what);
  done.store(true, std::memory_order_release);
  changed.notify_all();
}

void CollectiveRequest::State::wait() {
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return done.load(std::memory_order_acquire); });
}

CollectiveRequest::~CollectiveRequest() {
  if (state_ != nullptr) state_->wait();
}

bool CollectiveRequest::test() {
  if (state_ == nullptr) return true;
  if (!state_->done.load(std::memory_order_acquire)) return false;
  wait();
  return true;
}

void CollectiveRequest::wait() {
  if (state_ == nullptr) return;
  state_->wait();
  const auto finished = std::move(state_);
  // Taken along: the worker, which may let go of the request last, has no part in the exception.
  if (const std::exception_ptr error = std::move(finished->error)) std::rethrow_exception(error);
}

}  // namespace ropewalk

namespace ropewalk::collectives {

Worker::~Worker() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

std::shared_ptr<CollectiveRequest::State> Worker::enqueue(std::function<void()> call) {
  auto request = std::make_shared<CollectiveRequest::State>();
  const std::lock_guard lock(mutex_);
  if (!thread_.joinable()) {
    const os::SignalsBlocked blocked;
    thread_ = std::thread([this, identity = mpi::thread_identity()] {
      mpi::adopt_thread_identity(identity);
      work();
    });
  }
  pending_.fetch_add(1, std::memory_order_relaxed);
  jobs_.push_back({std::move(call), request});
  changed_.notify_all();
  return request;
}

void Worker::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return ending_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    std::exception_ptr error;
    try {
      job.call();
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    pending_.fetch_sub(1, std::memory_order_release);
    changed_.notify_all();
    job.request->finish(std::move(error));
  }
}

void Worker::wait_until_empty() {
  // A job of the worker itself calls blocking collectives, which must not wait for their own end.
  if (std::this_thread::get_id() == thread_.get_id()) return;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return pending_.load(std::memory_order_acquire) == 0; });
}

}  // namespace ropewalk::collectives
