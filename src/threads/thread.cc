#include "threads/thread.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <utility>

#include "mpi/mpi.hpp"
#include "os/cores.hpp"
#include "os/file.hpp"
#include "os/fork.hpp"
#include "os/signals.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::threads {
namespace {

constexpr std::size_t longest_name = 15;  // the kernel's limit, without the final zero

// A new thread takes this along from the one that starts it.
struct Start {
  ThreadOptions options;
  std::function<void()> body;
  std::uintptr_t identity;  // of the starter, for MPI
};

void* run(void* argument) noexcept {
  const std::unique_ptr<Start> start(static_cast<Start*>(argument));
  mpi::adopt_thread_identity(start->identity);
  pthread_setname_np(pthread_self(), start->options.name.c_str());
  os::run_this_thread_on(start->options.cores);
  start->body();
  return nullptr;
}

int create(pthread_t& thread, Start* start) noexcept {
  const os::SignalsBlocked blocked;
  int error = EINVAL;
  if (start->options.stack_bytes != 0) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    error = pthread_attr_setstacksize(&attributes, start->options.stack_bytes);
    if (error == 0) error = pthread_create(&thread, &attributes, &run, start);
    pthread_attr_destroy(&attributes);
  }
  return error == EINVAL ? pthread_create(&thread, nullptr, &run, start) : error;
}

}  // namespace

Thread::Thread(const ThreadOptions& options, std::function<void()> body) {
  auto start = std::make_unique<Start>(Start{options, std::move(body), 0});
  start->options.name.resize(std::min(options.name.size(), longest_name));
  start->identity = mpi::thread_identity();
  if (const int error = create(thread_, start.get())) {
    throw Error(ErrorCode::system, options.owner + " cannot be started (" + os::error_text(error) +
                                       "); raise `ulimit -u` or " + options.remedy);
  }
  (void)start.release();  // the thread's own by now
  generation_ = os::fork_generation();
}

Thread::Thread(Thread&& other) noexcept
    : thread_(other.thread_), generation_(std::exchange(other.generation_, 0)) {}

Thread& Thread::operator=(Thread&& other) noexcept {
  join();
  thread_ = other.thread_;
  generation_ = std::exchange(other.generation_, 0);
  return *this;
}

bool Thread::is_here() const noexcept { return generation_ == os::fork_generation(); }

bool Thread::is_current() const noexcept {
  return joinable() && is_here() && pthread_equal(thread_, pthread_self()) != 0;
}

void Thread::join() noexcept {
  if (joinable() && is_here()) pthread_join(thread_, nullptr);
  generation_ = 0;
}

void Thread::detach() noexcept {
  if (joinable() && is_here()) pthread_detach(thread_);
  generation_ = 0;
}

}  // namespace ropewalk::threads
