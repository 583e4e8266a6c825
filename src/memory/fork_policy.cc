#include "memory/fork_policy.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "memory/arena_core.hpp"
#include "os/cancellation.hpp"
#include "os/file.hpp"

namespace ropewalk::memory {
namespace {

struct Registry {
  std::mutex making;  // taken before `mutex`
  std::mutex mutex;   // taken before any participant's
  std::vector<ForkParticipant*> participants;
  ForkPolicy policy = ForkPolicy::copy;
  bool has_policy = false;
  // The pipe of the fork in progress: the child writes a byte to it, or dies, when it has copied.
  std::array<int, 2> pipe{-1, -1};
  // Of the thread that forks, before.
  std::optional<os::NotCancelled> whole;
};

// It is never destroyed: objects of static lifetime may free their memory after us.
Registry& registry() {
  static auto* instance = new Registry;
  return *instance;
}

void close_end(int& descriptor) noexcept {
  if (descriptor >= 0) close(descriptor);
  descriptor = -1;
}

void before_fork() noexcept {
  Registry& all = registry();
  Inside::set(true);  // handlers that run after this one may allocate
  all.making.lock();
  all.mutex.lock();
  all.whole.emplace();
  bool data = false;
  for (ForkParticipant* one : all.participants) {
    one->lock();
    data = data || one->has_data();
  }
  if (data && all.policy == ForkPolicy::copy && pipe2(all.pipe.data(), O_CLOEXEC) != 0) {
    all.pipe = {-1, -1};  // out of descriptors: the child drops
  }
}

void unlock_all(Registry& all) noexcept {
  for (ForkParticipant* one : all.participants) one->unlock();
  all.whole.reset();
  all.mutex.unlock();
  all.making.unlock();
  Inside::set(false);
}

void in_parent() noexcept {
  Registry& all = registry();
  const int kept = errno;  // of a fork that failed
  close_end(all.pipe[1]);
  if (all.pipe[0] >= 0) {
    char byte = 0;
    while (read(all.pipe[0], &byte, 1) < 0 && errno == EINTR) {
    }
    close_end(all.pipe[0]);
  }
  errno = kept;
  unlock_all(all);
}

void in_child() noexcept {
  Registry& all = registry();
  const bool copies = all.policy == ForkPolicy::copy;
  for (ForkParticipant* one : all.participants) {
    const bool safe = !one->has_data() || all.pipe[1] >= 0;  // the parent waits for us
    if (!copies || !safe || !one->copy_in_child()) one->drop_in_child();
  }
  // The child writes a byte instead of only closing the pipe: a process that another thread was
  // just cloning may have that end open, too. The read end is still ours, so there is no SIGPIPE.
  while (all.pipe[1] >= 0 && write(all.pipe[1], "", 1) < 0 && errno == EINTR) {
  }
  close_end(all.pipe[1]);
  close_end(all.pipe[0]);
  unlock_all(all);
}

// With the registry locked.
void read_policy(Registry& all) {
  if (all.has_policy) return;
  install_fork_handlers();
  all.policy = environment_fork_policy();
  all.has_policy = true;
}

// Newer ones register handlers in their own constructors, which may run after ours.
bool is_tcmalloc_here() noexcept { return dlsym(RTLD_DEFAULT, "tc_malloc") != nullptr; }

// Handlers that the program registers later run before ours: what they lock may be held by a thread
// that waits for an arena. Those of an allocator must run after ours, which allocate: most register
// them at the first call of malloc.
__attribute__((constructor(101))) void install_early() noexcept {
  void* volatile first = std::malloc(1);
  std::free(first);
  if (is_tcmalloc_here()) return;  // the first arena installs ours
  try {
    install_fork_handlers();
  } catch (...) {  // no memory: the first arena tries again
  }
}

}  // namespace

void install_fork_handlers() {
  static std::atomic<bool> installed{false};
  registry();  // made here, since an allocator may be locked when a fork begins
  if (installed.exchange(true)) return;
  if (const int error = pthread_atfork(before_fork, in_parent, in_child)) {
    installed.store(false);
    throw os::system_error("pthread_atfork", error);
  }
}

std::mutex& arena_making() noexcept { return registry().making; }

void add_participant(ForkParticipant& participant) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  read_policy(all);
  all.participants.push_back(&participant);
}

void remove_participant(ForkParticipant& participant) noexcept {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  const auto found = std::find(all.participants.begin(), all.participants.end(), &participant);
  if (found != all.participants.end()) all.participants.erase(found);
}

ForkParticipant* take_participant(const void* base) noexcept {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  const auto found = std::find_if(all.participants.begin(), all.participants.end(),
                                  [&](const auto* one) { return one->base() == base; });
  if (found == all.participants.end()) return nullptr;
  ForkParticipant* one = *found;
  all.participants.erase(found);
  return one;
}

ForkPolicy set_fork_policy(ForkPolicy policy) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  read_policy(all);
  return std::exchange(all.policy, policy);
}

bool peers_can_map(const void* address, std::size_t bytes) noexcept {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  return std::any_of(all.participants.begin(), all.participants.end(),
                     [&](const auto* one) { return one->peers_can_map(address, bytes); });
}

}  // namespace ropewalk::memory
