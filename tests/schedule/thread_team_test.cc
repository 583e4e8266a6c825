// A team runs tasks on all of its workers, joins them, and survives what they throw.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "mpi/mpi.hpp"
#include "os/affinity.hpp"
#include "os/epoch.hpp"
#include "ropewalk/schedule.hpp"
#include "support/thread_mpi.hpp"

namespace ropewalk {
namespace {

TEST(ThreadTeam, RunsOnAllWorkersAndJoins) {
  ThreadTeam team({.threads = 3});
  EXPECT_EQ(team.size(), 3);
  std::vector<int> times(3, 0);
  for (int run = 0; run < 200; ++run) {
    team.run([&](int worker) { ++times[static_cast<std::size_t>(worker)]; });
  }
  EXPECT_EQ(times, (std::vector<int>{200, 200, 200}));
}

// Ranks that the team was not made with may be given the same cores.
TEST(ThreadTeam, IsNotPinnedBesideRanksThatWereNotAsked) {
  if (os::thread_cpus().size() < 2) GTEST_SKIP() << "one core";
  const auto cores_of_worker = [](ThreadTeam& team) {
    std::vector<int> cores;
    team.run([&](int worker) {
      if (worker == 1) cores = os::thread_cpus();
    });
    return cores.size();
  };
  ThreadTeam alone({.threads = 2});
  const bool pins = cores_of_worker(alone) == 1;  // not where a quota leaves no core for it
  test::run_ranks(2, [&](int) {
    ThreadTeam local({.threads = 2});
    EXPECT_GT(cores_of_worker(local), 1U);
    ThreadTeam some(Communicator(mpi::comm_self().value), {.threads = 2});
    EXPECT_GT(cores_of_worker(some), 1U);
  });
  test::run_ranks(1, [&](int) {
    ThreadTeam all(Communicator::world(), {.threads = 2});
    EXPECT_EQ(cores_of_worker(all) == 1, pins);
  });
}

// It may be moved off a worker's core, and may go wherever it was allowed before.
TEST(ThreadTeam, LeavesTheCallersAffinityAsItIs) {
  const std::vector<int> before = os::thread_cpus();
  if (before.size() < 2) GTEST_SKIP() << "one core";
  ThreadTeam team({.threads = 2});
  for (const int core : before) {  // one of them is the worker's
    os::set_thread_cpus(std::vector<int>{core});
    team.run([](int) {});
    EXPECT_EQ(os::thread_cpus(), std::vector<int>{core});
    os::set_thread_cpus(before);
    team.run([](int) {});
    EXPECT_EQ(os::thread_cpus(), before);
  }
}

TEST(ThreadTeam, SleepersWakeUp) {
  ThreadTeam team({.threads = 2});
  int sum = 0;
  for (int run = 0; run < 3; ++run) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    team.run([&](int worker) {
      if (worker == 1) ++sum;
    });
  }
  EXPECT_EQ(sum, 3);
}

TEST(ThreadTeam, BarrierShowsWhatWasWritten) {
  ThreadTeam team({.threads = 3});
  std::vector<int> values(3, 0);
  std::atomic<int> wrong{0};
  team.run([&](int worker) {
    for (int round = 1; round < 100; ++round) {
      values[static_cast<std::size_t>(worker)] = round;
      team.barrier();
      for (const int value : values) wrong += value != round ? 1 : 0;
      team.barrier();
    }
  });
  EXPECT_EQ(wrong.load(), 0);
}

TEST(ThreadTeam, OneThreadNeedsNoOther) {
  ThreadTeam team({.threads = 1});
  int count = 0;
  team.run([&](int) {
    team.barrier();
    ++count;
  });
  EXPECT_EQ(count, 1);
}

// The epoch of the inner run would be that of the outer one to workers that have not begun it.
TEST(ThreadTeam, RefusesARunInsideATask) {
  ThreadTeam team({.threads = 3});
  for (int caller = 0; caller < 3; ++caller) {
    std::string text;
    std::atomic<int> inner{0};
    try {
      team.run([&](int worker) {
        team.barrier();
        if (worker == caller) team.run([&](int) { ++inner; });
      });
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::argument);
      text = error.what();
    }
    EXPECT_EQ(text.rfind("team: run() inside a task of the same team", 0), 0U) << text;
    EXPECT_EQ(inner.load(), 0);
    std::atomic<int> fine{0};
    team.run([&](int) { ++fine; });
    EXPECT_EQ(fine.load(), 3);
  }
}

TEST(ThreadTeam, TeamsMayRunInsideTasksOfOthers) {
  ThreadTeam team({.threads = 2});
  ThreadTeam other({.threads = 2});
  std::atomic<int> inner{0};
  team.run([&](int worker) {
    if (worker == 0) other.run([&](int) { ++inner; });
  });
  EXPECT_EQ(inner.load(), 2);
}

TEST(ThreadTeam, ExceptionsLetTheOthersGo) {
  ThreadTeam team({.threads = 3});
  for (int thrower = 0; thrower < 3; ++thrower) {
    std::atomic<int> beyond{0};
    EXPECT_THROW(team.run([&](int worker) {
      if (worker == thrower) throw std::runtime_error("no");
      team.barrier();
      ++beyond;
    }),
                 std::runtime_error);
    EXPECT_EQ(beyond.load(), 0);
    int fine = 0;
    team.run([&](int worker) {
      team.barrier();
      if (worker == 0) ++fine;
      team.barrier();
    });
    EXPECT_EQ(fine, 1);
  }
}

TEST(ThreadTeam, RefusesAbsurdSizes) {
  EXPECT_THROW(ThreadTeam({.threads = -1}), Error);
  EXPECT_THROW(ThreadTeam({.threads = ThreadTeam::max_threads + 1}), Error);
}

TEST(ThreadTeam, RanksShareCores) {
  test::run_ranks(2, [](int) {
    ThreadTeam team(Communicator::world(), {.threads = 2});
    std::atomic<int> count{0};
    team.run([&](int) { ++count; });
    EXPECT_EQ(count.load(), 2);
  });
}

#if !defined(__SANITIZE_THREAD__)  // it cannot follow a fork with threads
TEST(ThreadTeam, AChildHasNone) {
  ThreadTeam team({.threads = 2});
  const pid_t child = fork();
  if (child == 0) {
    try {
      team.run([](int) {});
    } catch (const Error& error) {
      _exit(error.code() == ErrorCode::unsupported ? 0 : 2);
    }
    _exit(1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}
#endif

TEST(Barrier, CrowdedThreadsSleepAndComeBack) {
  os::Barrier barrier(3, true);
  std::vector<int> seen(3, 0);
  const auto meet = [&](int thread) {
    for (int round = 1; round <= 50; ++round) {
      seen[static_cast<std::size_t>(thread)] = round;
      barrier.arrive_and_wait();
      for (const int other : seen) EXPECT_EQ(other, round);
      barrier.arrive_and_wait();
    }
  };
  std::thread one(meet, 1);
  std::thread two(meet, 2);
  meet(0);
  one.join();
  two.join();
}

}  // namespace
}  // namespace ropewalk
