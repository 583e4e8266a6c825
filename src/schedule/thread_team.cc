// ThreadTeam: persistent threads, each run begun by one epoch and ended by a barrier.
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "mpi/collectively.hpp"
#include "os/cores.hpp"
#include "os/epoch.hpp"
#include "os/fork.hpp"
#include "ropewalk/schedule.hpp"
#include "schedule/placement.hpp"
#include "threads/thread.hpp"

namespace ropewalk {
namespace {

struct GivenUp {};  // another worker has thrown

}  // namespace

struct ThreadTeam::State {
  explicit State(schedule::Placement where);
  ~State();

  void run(void (*task)(void*, int), void* object);
  void meet();
  bool is_here() const noexcept { return fork_.same_process(); }
  const schedule::Placement& placement() const noexcept { return placement_; }

 private:
  void start_thread(int worker);
  void leave_the_workers_cores() const noexcept;
  void stop_threads() noexcept;
  void live(int worker) noexcept;
  void work(int worker) noexcept;
  void fail(std::exception_ptr error) noexcept;
  void check_run() const;

  schedule::Placement placement_;
  os::ForkCheck fork_;
  os::Epoch started_;
  os::Barrier ended_;
  os::Barrier barrier_;
  // They are written before started_ advances.
  void (*task_)(void*, int) = nullptr;  // null: the threads end
  void* object_ = nullptr;
  bool is_running_ = false;
  std::atomic<bool> failed_{false};  // in the run under way
  std::exception_ptr error_;         // written by who sets failed_
  std::vector<threads::Thread> threads_;
};

ThreadTeam::State::State(schedule::Placement where)
    : placement_(std::move(where)),
      started_(placement_.crowded),
      ended_(placement_.threads, placement_.crowded),
      barrier_(placement_.threads, placement_.crowded) {
  try {
    threads_.reserve(static_cast<std::size_t>(placement_.threads));
    for (int worker = 1; worker < placement_.threads; ++worker) start_thread(worker);
  } catch (...) {
    stop_threads();
    throw;
  }
}

ThreadTeam::State::~State() { stop_threads(); }

void ThreadTeam::State::start_thread(int worker) {
  threads::ThreadOptions options{.name = "rw-team-" + std::to_string(worker),
                                 .owner = "threads: number " + std::to_string(worker + 1) + " of " +
                                          std::to_string(placement_.threads),
                                 .remedy = "ask for fewer"};
  if (!placement_.cores.empty()) {
    options.cores = {placement_.cores[static_cast<std::size_t>(worker)]};
  }
  threads_.emplace_back(options, [this, worker] { live(worker); });
}

// The caller is not pinned, its affinity is the program's. Where the kernel has put it on the core
// of a worker the two take turns, and it may be tens of milliseconds before the kernel sees that
// the caller's own core is idle. To look costs some ns.
void ThreadTeam::State::leave_the_workers_cores() const noexcept {
  if (placement_.cores.empty()) return;
  const int here = sched_getcpu();
  const auto workers = placement_.cores.begin() + 1;
  if (std::find(workers, placement_.cores.end(), here) == placement_.cores.end()) return;
  os::move_this_thread_to(placement_.cores.front());
}

void ThreadTeam::State::stop_threads() noexcept {
  task_ = nullptr;
  started_.advance();
  for (threads::Thread& thread : threads_) thread.join();
}

void ThreadTeam::State::live(int worker) noexcept {
  for (std::uint32_t run = 0;; ++run) {
    started_.wait_beyond(run);
    if (task_ == nullptr) return;
    work(worker);
    ended_.arrive_and_wait();
  }
}

void ThreadTeam::State::work(int worker) noexcept {
  try {
    task_(object_, worker);
  } catch (const GivenUp&) {
  } catch (...) {
    fail(std::current_exception());
  }
}

// Who waits in a barrier is let go, and finds failed_: it was set before.
void ThreadTeam::State::fail(std::exception_ptr error) noexcept {
  if (failed_.exchange(true, std::memory_order_seq_cst)) return;
  error_ = std::move(error);
  barrier_.release();
}

void ThreadTeam::State::meet() {
  if (placement_.threads == 1) return;
  const std::uint32_t turn = barrier_.turn();
  if (!failed_.load(std::memory_order_seq_cst)) barrier_.arrive_and_wait(turn);
  if (failed_.load(std::memory_order_seq_cst)) throw GivenUp{};
}

void ThreadTeam::State::check_run() const {
  if (!is_here()) {
    throw Error(ErrorCode::unsupported,
                "team: made before a fork, and this is the child; make a new one here");
  }
  if (is_running_) {
    throw Error(ErrorCode::argument,
                "team: run() inside a task of the same team, expected one run at a time; make "
                "another team for it, or do the work in the task itself");
  }
}

void ThreadTeam::State::run(void (*task)(void*, int), void* object) {
  check_run();
  if (placement_.threads == 1) return task(object, 0);
  leave_the_workers_cores();
  task_ = task;
  object_ = object;
  is_running_ = true;
  started_.advance();
  work(0);
  ended_.arrive_and_wait();
  is_running_ = false;
  if (!failed_.load(std::memory_order_relaxed)) return;
  barrier_.reset();
  failed_.store(false, std::memory_order_relaxed);
  std::rethrow_exception(std::exchange(error_, nullptr));
}

ThreadTeam::ThreadTeam(const ThreadTeamOptions& options)
    : state_(std::make_unique<State>(schedule::place_alone(options))) {}
ThreadTeam::ThreadTeam(Communicator communicator, const ThreadTeamOptions& options) {
  mpi::collectively({communicator.handle()}, [&] {
    state_ = std::make_unique<State>(schedule::place_together(communicator, options));
  });
}
ThreadTeam::~ThreadTeam() = default;

int ThreadTeam::size() const noexcept { return state_->placement().threads; }
bool ThreadTeam::crowded() const noexcept { return state_->placement().crowded; }
void ThreadTeam::barrier() { state_->meet(); }
void ThreadTeam::run_erased(void (*task)(void*, int), void* object) { state_->run(task, object); }

}  // namespace ropewalk
