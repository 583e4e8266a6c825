#include "collectives/worker.hpp"

#include <utility>

#include "collectives/state.hpp"
#include "node/waits.hpp"

namespace ropewalk {

void CollectiveRequest::State::finish(std::exception_ptr what) {
  const std::lock_guard lock(mutex);
  error = std::move(what);
  done.store(true, std::memory_order_release);
  changed.notify_all();
}

void CollectiveRequest::State::wait() {
  if (without_thread != nullptr && !done.load(std::memory_order_acquire)) without_thread->drain();
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return done.load(std::memory_order_acquire); });
}

CollectiveRequest::~CollectiveRequest() {
  if (state_ != nullptr) state_->wait();
}

bool CollectiveRequest::test() {
  if (state_ == nullptr) return true;
  const bool here = state_->without_thread != nullptr;
  if (!here && !state_->done.load(std::memory_order_acquire)) return false;
  wait();
  return true;
}

void CollectiveRequest::wait() {
  if (state_ == nullptr) return;
  state_->wait();
  const auto finished = std::move(state_);
  // The exception is moved out, so that the worker, which may let go of the request last, has no
  // part in it.
  if (const std::exception_ptr error = std::move(finished->error)) std::rethrow_exception(error);
}

}  // namespace ropewalk

namespace ropewalk::collectives {
namespace {

// What the workers of the process still have to do: calls, and communicators to end.
class Agenda {
 public:
  void add() noexcept {
    const std::lock_guard lock(mutex_);
    ++count_;
  }
  void done() noexcept {
    const std::lock_guard lock(mutex_);
    if (--count_ == 0) changed_.notify_all();
  }
  void wait() noexcept {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return count_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int count_ = 0;
};

// Never destroyed: workers may come to it after static destructors have run.
Agenda& agenda() noexcept {
  alignas(Agenda) static std::byte room[sizeof(Agenda)];
  static auto* instance = new (room) Agenda;
  return *instance;
}

}  // namespace

void Worker::stop() noexcept {
  drain();  // where there is no thread
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    changed_.notify_all();
  }
  thread_.join();
  ending_ = false;
}

bool Worker::start() noexcept {
  const std::lock_guard lock(mutex_);
  return start_locked();
}

bool Worker::start_locked() noexcept {
  if (thread_.joinable()) return true;
  try {
    thread_ = threads::Thread({.name = "rw-collectives"}, [this] { work(); });
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

Worker::Prepared Worker::prepare(std::function<void()> call) {
  Prepared made;
  made.push_back({std::move(call), std::make_shared<CollectiveRequest::State>()});
  return made;
}

void Worker::enqueue(Prepared job) noexcept {
  agenda().add();
  const std::lock_guard lock(mutex_);
  if (!start_locked()) job.front().request->without_thread = this;
  pending_.fetch_add(1, std::memory_order_relaxed);
  jobs_.splice(jobs_.end(), job);
  changed_.notify_all();
}

void Worker::enqueue_refusal() noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (!spare_.empty()) {
      agenda().add();
      start_locked();
      pending_.fetch_add(1, std::memory_order_relaxed);
      jobs_.splice(jobs_.end(), spare_);
      changed_.notify_all();
      return;
    }
  }
  // This is the second failure in a row for lack of memory.
  drain();
  refuse_(owner_);
}

bool Worker::hand_over(void (*end)(void*) noexcept, void* object) noexcept {
  const std::lock_guard lock(mutex_);
  if (pending_.load(std::memory_order_acquire) == 0 || !thread_.joinable()) return false;
  agenda().add();
  end_ = end;
  ended_ = object;
  return true;
}

void Worker::work() noexcept {
  node::Waits::this_thread_is_beside();
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return ending_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    run_first(lock);
    if (end_ == nullptr || !jobs_.empty()) continue;
    // The last touch of this object is in end(): nobody joins the thread any more.
    thread_.detach();
    lock.unlock();
    end_(ended_);
    agenda().done();
    return;
  }
}

// Refusals give their room back. The mutex is held at the beginning and at the end.
void Worker::run_first(std::unique_lock<std::mutex>& lock) noexcept {
  Prepared job;
  job.splice(job.begin(), jobs_, jobs_.begin());
  const auto request = std::move(job.front().request);
  const bool refused = job.front().call == nullptr;
  lock.unlock();
  std::exception_ptr error;
  try {
    if (refused) {
      refuse_(owner_);
    } else {
      job.front().call();
    }
  } catch (...) {
    error = std::current_exception();
  }
  job.front().call = nullptr;
  lock.lock();
  if (refused) spare_.splice(spare_.end(), job);
  pending_.fetch_sub(1, std::memory_order_release);
  changed_.notify_all();
  if (request != nullptr) request->finish(std::move(error));
  agenda().done();
}

void Worker::wait_until_empty() {
  // A job of the worker itself calls blocking collectives, which must not wait for their own end.
  if (thread_.is_current()) return;
  std::unique_lock lock(mutex_);
  if (!thread_.joinable()) {
    if (std::exchange(running_here_, true)) return;
    while (!jobs_.empty()) run_first(lock);
    running_here_ = false;
    return;
  }
  changed_.wait(lock, [&] { return pending_.load(std::memory_order_acquire) == 0; });
}

void retire(std::unique_ptr<Collectives> communicator) noexcept {
  if (communicator == nullptr) return;
  constexpr auto end = [](void* object) noexcept { delete static_cast<Collectives*>(object); };
  if (communicator->state().worker.hand_over(end, communicator.get())) {
    (void)communicator.release();
  }
}

void wait_for_workers() noexcept { agenda().wait(); }

}  // namespace ropewalk::collectives
