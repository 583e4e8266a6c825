// Endpoint sets on ranks as threads: making and ending them, joint errors, lanes, threads, fork.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "mpi/mpi.hpp"
#include "os/affinity.hpp"
#include "os/cores.hpp"
#include "os/file.hpp"
#include "ropewalk/endpoint.hpp"
#include "ropewalk/ropewalk.h"
#include "support/thread_mpi.hpp"
#include "transport/message_set.hpp"

namespace ropewalk::test {
namespace {

// Returns the thread ids of the comm threads in this process.
std::vector<pid_t> comm_threads() {
  std::vector<pid_t> found;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    const auto comm = os::read_text(task.path() / "comm");  // nothing if it has just ended
    if (comm && comm->rfind("rw-lane-", 0) == 0) {
      found.push_back(std::stoi(task.path().filename().string()));
    }
  }
  return found;
}

// Threads name and place themselves, and leave /proc a moment after they are joined.
template <class Condition>
bool comes_true(Condition condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

class Variable {
 public:
  explicit Variable(const char* value) { setenv("ROPEWALK_LANES", value, 1); }
  ~Variable() { unsetenv("ROPEWALK_LANES"); }
};

// Makes a set on every rank with the options of that rank; all must fail with one text.
template <class Options>
std::string joint_error(int ranks, ErrorCode code, Options options, const RunOptions& run = {}) {
  std::vector<std::string> texts(static_cast<std::size_t>(ranks));
  run_ranks(
      ranks,
      [&](int rank) {
        try {
          const EndpointSet endpoints(Communicator::world(), options(rank));
          ADD_FAILURE() << "no error on rank " << rank;
        } catch (const Error& error) {
          EXPECT_EQ(error.code(), code);
          texts[static_cast<std::size_t>(rank)] = error.what();
        }
      },
      run);
  for (const std::string& text : texts) EXPECT_EQ(text, texts[0]);
  return texts[0];
}

TEST(EndpointSet, KnowsItsLanesAndRanks) {
  run_ranks(3, [](int rank) {
    const EndpointSet endpoints(Communicator::world(), {.lanes = 2});
    EXPECT_EQ(endpoints.lanes(), 2);
    EXPECT_EQ(endpoints.rank(), rank);
    EXPECT_EQ(endpoints.size(), 3);
    EXPECT_TRUE(endpoints.has_threads());
    EXPECT_NE(endpoints.communicator(0).handle(), endpoints.communicator(1).handle());
    EXPECT_EQ(endpoints.communicator(1).rank(), rank);
    EXPECT_THROW(endpoints.communicator(2), Error);
    EXPECT_THROW(endpoints.communicator(-1), Error);
  });
}

TEST(EndpointSet, AutomaticLanesAreAlikeAndFew) {
  std::vector<int> lanes(3);
  run_ranks(3, [&](int rank) {
    const EndpointSet endpoints(Communicator::world());
    lanes[static_cast<std::size_t>(rank)] = endpoints.lanes();
  });
  EXPECT_EQ(lanes, std::vector<int>(3, lanes[0]));
  EXPECT_GE(lanes[0], 1);
  EXPECT_LE(lanes[0], 8);
}

TEST(EndpointSet, TheVariableSetsLanesUnlessTheProgramDoes) {
  const Variable variable("3");
  run_ranks(2, [](int) {
    EXPECT_EQ(EndpointSet(Communicator::world()).lanes(), 3);
    EXPECT_EQ(EndpointSet(Communicator::world(), {.lanes = 2}).lanes(), 2);
  });
}

TEST(EndpointSet, ErrorsAreJoint) {
  EXPECT_EQ(joint_error(3, ErrorCode::argument,
                        [](int rank) { return EndpointOptions{.lanes = rank == 1 ? 65 : 1}; })
                .find("lanes: 65 on rank 1"),
            0U);
  EXPECT_EQ(joint_error(3, ErrorCode::argument,
                        [](int rank) { return EndpointOptions{.lanes = rank == 2 ? 2 : 1}; })
                .find("lanes: 2 on rank 2"),
            0U);
  EXPECT_EQ(joint_error(2, ErrorCode::argument,
                        [](int rank) { return EndpointOptions{.lanes = 1, .threads = rank == 0}; })
                .find("threads: 0 on rank 1"),
            0U);
  EXPECT_EQ(joint_error(2, ErrorCode::argument,
                        [](int rank) {
                          return EndpointOptions{.lanes = 1, .split_bytes = rank == 0 ? 10U : 20U};
                        })
                .find("split_bytes: 20 on rank 1"),
            0U);
  for (const char* bad : {"0", "65", "four", "4x", "99999999999999999999"}) {
    const Variable variable(bad);
    EXPECT_EQ(joint_error(2, ErrorCode::argument, [](int) { return EndpointOptions{}; })
                  .find("ROPEWALK_LANES: found \""),
              0U);
  }
}

TEST(EndpointSet, ThreadLevelTooLowNamesTheRemedy) {
  for (const auto level : {mpi::ThreadLevel::funneled, mpi::ThreadLevel::serialized}) {
    const RunOptions run{.level = level};
    for (const EndpointOptions& options : {EndpointOptions{}, EndpointOptions{.lanes = 1},
                                           EndpointOptions{.lanes = 2, .threads = false}}) {
      const std::string text = joint_error(
          2, ErrorCode::unsupported, [&](int) { return options; }, run);
      EXPECT_NE(text.find("MPI_Init_thread(MPI_THREAD_MULTIPLE)"), std::string::npos) << text;
    }
    run_ranks(
        2,
        [](int rank) {
          EndpointSet endpoints(Communicator::world(), {.threads = false});
          EXPECT_EQ(endpoints.lanes(), 1);
          int value = 41;
          if (rank == 0) endpoints.send(0, &value, sizeof(value), 1, 0);
          if (rank == 1) endpoints.receive(0, &value, sizeof(value), 0, 0);
        },
        run);
  }
}

// MPI fails in the middle of one rank's construction: all say what it was, and where.
TEST(EndpointSet, AFailureOnOneRankIsAFailureOnAll) {
  std::atomic<int> calls{0};
  RunOptions run;
  run.check_leaks = false;  // the duplicate that rank 1 lost cannot be freed by anyone
  run.fail = [&](const char* function, int rank) {
    const bool hit = rank == 1 && std::string("MPI_Comm_set_errhandler") == function;
    return hit && calls.fetch_add(1) == 1 ? 17 : 0;  // on the second lane
  };
  run_ranks(
      3,
      [](int rank) {
        try {
          const EndpointSet endpoints(Communicator::world(), {.lanes = 3});
          ADD_FAILURE() << "no error on rank " << rank;
        } catch (const Error& error) {
          const std::string text = error.what();
          EXPECT_EQ(text.find("MPI_Comm_set_errhandler"), 0U) << text;
          EXPECT_NE(text.find("(found on rank 1)"), std::string::npos) << text;
        }
        mpi::barrier(mpi::comm_world());
        EXPECT_EQ(live_communicators(), 1U);
      },
      run);
  EXPECT_TRUE(comes_true([] { return comm_threads().empty(); }));
}

TEST(EndpointSet, ThreadsAreThereWhileItLivesAndGoneAfterwards) {
  run_ranks(2, [](int) {
    for (const int lanes : {1, 3}) {
      const EndpointSet endpoints(Communicator::world(), {.lanes = lanes});
      const auto expected = 2 * static_cast<std::size_t>(lanes);
      EXPECT_TRUE(comes_true([&] { return comm_threads().size() == expected; }));
      mpi::barrier(mpi::comm_world());  // both have counted before one of them goes on
    }
    const EndpointSet endpoints(Communicator::world(), {.lanes = 3, .threads = false});
    EXPECT_FALSE(endpoints.has_threads());
  });
  EXPECT_TRUE(comes_true([] { return comm_threads().empty(); }));
}

TEST(EndpointSet, CommThreadsSitOnTheLastCores) {
  const std::vector<int> cores = os::process_cores();
  run_ranks(1, [&](int) {
    const EndpointSet endpoints(Communicator::world(), {.lanes = 1});
    EXPECT_TRUE(comes_true([&] {
      const std::vector<pid_t> threads = comm_threads();
      return threads.size() == 1 && os::thread_cpus(threads[0]) == std::vector<int>{cores.back()};
    }));
  });
  run_ranks(1, [&](int) {
    const EndpointSet endpoints(Communicator::world(), {.lanes = 1, .pin = false});
    EXPECT_TRUE(comes_true([&] {
      const std::vector<pid_t> threads = comm_threads();
      return threads.size() == 1 && os::thread_cpus(threads[0]) == cores;
    }));
  });
}

// An OpenMP runtime may have bound the caller to one core: comm threads must not end up there.
TEST(EndpointSet, CoresAreThoseOfTheProcessNotOfTheCaller) {
  const std::vector<int> cores = os::process_cores();
  if (cores.size() < 2) GTEST_SKIP() << "one core only";
  std::thread bound([&] {
    ASSERT_EQ(os::set_thread_cpus({cores.front()}), 0);
    EXPECT_EQ(os::process_cores(), cores);
  });
  bound.join();
}

TEST(EndpointSet, BlockingCallsOnEveryLane) {
  run_ranks(2,
            [](int rank) {
              EndpointSet endpoints(Communicator::world(), {.lanes = 3, .threads = false});
              std::vector<std::thread> team;
              for (int lane = 0; lane < 3; ++lane) {
                team.emplace_back([&endpoints, rank, lane, identity = mpi::thread_identity()] {
                  mpi::adopt_thread_identity(identity);
                  std::vector<int> sent(500, 10 * rank + lane);
                  std::vector<int> got(500);
                  const std::size_t bytes = sent.size() * sizeof(int);
                  if (rank == 0) endpoints.send(lane, sent.data(), bytes, 1, 32765);
                  endpoints.receive(lane, got.data(), bytes, 1 - rank, 32765);
                  if (rank == 1) endpoints.send(lane, sent.data(), bytes, 0, 32765);
                  EXPECT_EQ(got, std::vector<int>(500, 10 * (1 - rank) + lane));
                });
              }
              for (std::thread& thread : team) thread.join();
              EXPECT_THROW(endpoints.send(3, nullptr, 0, 0, 0), Error);
              EXPECT_THROW(endpoints.send(0, nullptr, 0, 2, 0), Error);
              EXPECT_THROW(endpoints.send(0, nullptr, 0, 0, -1), Error);
              EXPECT_THROW(endpoints.receive(0, nullptr, 0, -1, 0), Error);
              EXPECT_THROW(endpoints.receive(0, nullptr, 0, 0, 32766), Error);
            },
            {.eager_bytes = 100});
}

TEST(EndpointSet, IsMadeAndFreedManyTimes) {
  run_ranks(3, [](int rank) {
    for (int i = 0; i < 15; ++i) {
      EndpointSet endpoints(Communicator::world(), {.lanes = 1 + i % 3, .split_bytes = 500});
      MessageSet set(static_cast<unsigned>(i), 3, rank, {.messages = 6, .lanes = 1 + i % 3});
      MessagePlan plan = endpoints.plan(set.messages());
      set.fill(i);
      mpi::barrier(mpi::comm_world());
      plan.start(Strategy::threaded);
      plan.wait();
      EXPECT_EQ(set.check(i), "");
    }
    mpi::barrier(mpi::comm_world());
    EXPECT_EQ(live_communicators(), 0U);
  });
}

TEST(EndpointSet, AChildOfForkThrowsAndLeavesTheParentAlone) {
  run_ranks(1, [](int) {
    auto endpoints =
        std::make_unique<EndpointSet>(Communicator::world(), EndpointOptions{.lanes = 2});
    MessageSet set(1, 1, 0, {.lanes = 2});
    auto plan = std::make_unique<MessagePlan>(endpoints->plan(set.messages()));
    // The comm threads are idle from here on: no lock of theirs is held in the child.
    plan->start(Strategy::threaded);
    plan->wait();
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(60);  // a child that hangs fails the test instead
      int refused = 0;
      try {
        plan->start(Strategy::threaded);
      } catch (const Error& error) {
        refused += error.code() == ErrorCode::unsupported ? 1 : 0;
      }
      try {
        endpoints->send(0, nullptr, 0, 0, 0);
      } catch (const Error& error) {
        refused += error.code() == ErrorCode::unsupported ? 1 : 0;
      }
      plan.reset();
      endpoints.reset();
      _exit(refused);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status)) << "ended by signal " << WTERMSIG(status);
    EXPECT_EQ(WEXITSTATUS(status), 2);
    set.fill(0);
    plan->start(Strategy::threaded);
    plan->wait();
    EXPECT_EQ(set.check(0), "");
  });
}

TEST(EndpointSet, TheCInterface) {
  run_ranks(2, [](int rank) {
    rw_endpoints* endpoints = nullptr;
    const rw_mpi_comm world = Communicator::world().handle();
    ASSERT_EQ(rw_endpoints_create(world, 2, 1, &endpoints), RW_SUCCESS) << rw_last_error();
    int lanes = 0;
    EXPECT_EQ(rw_endpoints_lanes(endpoints, &lanes), RW_SUCCESS);
    EXPECT_EQ(lanes, 2);
    int value = 7 + rank;
    if (rank == 0) {
      EXPECT_EQ(rw_send(endpoints, 1, &value, sizeof(value), 1, 3), RW_SUCCESS);
    }
    if (rank == 1) {
      EXPECT_EQ(rw_receive(endpoints, 1, &value, sizeof(value), 0, 3), RW_SUCCESS);
    }
    EXPECT_EQ(value, 7);
    EXPECT_EQ(rw_send(endpoints, 5, &value, 4, 1, 3), RW_ERROR_ARGUMENT);
    EXPECT_EQ(std::string(rw_last_error()).find("lane: 5"), 0U);
    EXPECT_EQ(rw_send(endpoints, 0, nullptr, 4, 1, 3), RW_ERROR_ARGUMENT);
    EXPECT_EQ(rw_receive(nullptr, 0, &value, 4, 1, 3), RW_ERROR_ARGUMENT);
    EXPECT_EQ(rw_endpoints_lanes(endpoints, nullptr), RW_ERROR_ARGUMENT);
    EXPECT_EQ(rw_endpoints_free(endpoints), RW_SUCCESS);
    EXPECT_EQ(rw_endpoints_free(nullptr), RW_SUCCESS);
    EXPECT_EQ(rw_endpoints_create(world, 65, 1, &endpoints), RW_ERROR_ARGUMENT);
    EXPECT_EQ(rw_endpoints_create(world, 1, 1, nullptr), RW_ERROR_ARGUMENT);
  });
}

TEST(EndpointSet, NoCommunicatorIsRefused) {
  run_ranks(1, [](int) {
    try {
      const EndpointSet endpoints(Communicator(mpi::comm_null().value));
      ADD_FAILURE() << "no Error";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::argument);
    }
  });
}

}  // namespace
}  // namespace ropewalk::test
