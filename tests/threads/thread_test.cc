// Threads of ropewalk's own: what they inherit from the thread that starts them, and what happens
// to them in a child of fork.
#include "threads/thread.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "os/affinity.hpp"
#include "os/cores.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::threads {
namespace {

// What a thread says about itself.
struct Seen {
  std::string name;
  std::vector<int> cpus;
  sigset_t blocked{};
};

Seen look(const ThreadOptions& options) {
  Seen seen;
  Thread(options, [&] {
    char name[16] = "";
    pthread_getname_np(pthread_self(), name, sizeof(name));
    seen.name = name;
    seen.cpus = os::thread_cpus();
    pthread_sigmask(SIG_BLOCK, nullptr, &seen.blocked);
  }).join();
  return seen;
}

TEST(Thread, HasItsName) {
  EXPECT_EQ(look({.name = "rw-test"}).name, "rw-test");
  EXPECT_EQ(look({.name = "a name of twenty byte"}).name, "a name of twent");
}

TEST(Thread, RunsOnItsCores) {
  const std::vector<int> all = os::process_cores();
  EXPECT_EQ(look({.name = "one", .cores = {all.back()}}).cpus, std::vector<int>{all.back()});
  EXPECT_EQ(look({.name = "any"}).cpus, os::thread_cpus());
}

TEST(Thread, TakesNoSignalsOfTheProgram) {
  const Seen seen = look({.name = "rw-test"});
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGALRM, SIGCHLD}) {
    EXPECT_EQ(sigismember(&seen.blocked, signal), 1) << signal;
  }
  EXPECT_EQ(sigismember(&seen.blocked, SIGSEGV), 0);
  sigset_t own;
  pthread_sigmask(SIG_BLOCK, nullptr, &own);
  EXPECT_EQ(sigismember(&own, SIGTERM), 0);  // its starter goes on taking them
}

TEST(Thread, StacksThatAreTooSmallBecomeTheDefault) {
  EXPECT_EQ(look({.name = "small", .stack_bytes = 1}).name, "small");
  EXPECT_EQ(look({.name = "enough", .stack_bytes = std::size_t{256} << 10}).name, "enough");
}

TEST(Thread, IsJoinedOnce) {
  std::atomic<int> runs{0};
  {
    Thread first({.name = "rw-test"}, [&] { ++runs; });
    Thread second = std::move(first);
    EXPECT_FALSE(first.joinable());
    EXPECT_TRUE(second.joinable());
    second.join();
    EXPECT_FALSE(second.joinable());
    second.join();
  }
  EXPECT_EQ(runs, 1);
  Thread none;
  none.join();
}

TEST(Thread, KnowsItself) {
  Thread thread;
  std::atomic<bool> made{false};
  std::atomic<bool> current{false};
  thread = Thread({.name = "rw-test"}, [&] {
    while (!made) sched_yield();
    current = thread.is_current();
  });
  made = true;
  EXPECT_FALSE(thread.is_current());
  thread.join();
  EXPECT_TRUE(current);
  EXPECT_FALSE(Thread().is_current());
}

// A join there would wait for a thread of the parent's, for ever.
TEST(Thread, ChildrenOfForkForgetIt) {
  std::atomic<bool> stop{false};
  auto thread = std::make_unique<Thread>(ThreadOptions{.name = "rw-test"}, [&] {
    while (!stop) usleep(1000);
  });
  const pid_t child = fork();
  if (child == 0) {
    const bool here = thread->is_here();
    thread.reset();
    _exit(here ? 1 : 0);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(thread->is_here());
  stop = true;
}

TEST(Thread, TellsWhatCannotBeStarted) {
  const std::string what = "lanes: the comm thread of lane 3";
  constexpr std::size_t too_large = std::size_t{1} << 50;  // more than a process has addresses
  try {
    Thread({.name = "rw-test",
            .stack_bytes = too_large,
            .owner = what,
            .remedy = "ask for fewer lanes"},
           [] {});
    FAIL() << "started";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::system);
    const std::string text = error.what();
    EXPECT_NE(text.find(what + " cannot be started ("), std::string::npos) << text;
    EXPECT_NE(text.find("raise `ulimit -u` or ask for fewer lanes"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace ropewalk::threads
