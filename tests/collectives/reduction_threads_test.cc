// Tests the threads that reduce together: each block is combined once, whichever thread takes it
// and however a call ends.
#include "collectives/nodes/reduction_threads.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "collectives/nodes/choice.hpp"

namespace ropewalk::collectives::nodes {
namespace {

using Vector = std::vector<std::int64_t>;

// Two vectors, their sum as it comes, and as it must be.
struct Sum {
  explicit Sum(std::size_t count) : a(count), b(count, 3), result(count) {
    std::iota(a.begin(), a.end(), std::int64_t{0});
  }
  Combination combination() {
    const auto bytes = [](auto& vector) { return reinterpret_cast<std::byte*>(vector.data()); };
    return {&operation(ElementType::int64, ReductionOp::sum), bytes(result), bytes(a), bytes(b),
            result.size()};
  }
  bool right() const {
    for (std::size_t i = 0; i < result.size(); ++i) {
      if (result[i] != a[i] + b[i]) return false;
    }
    return true;
  }
  Vector a, b, result;
};

void nothing(void*, int) {}

TEST(ReductionThreads, EachBlockIsCombinedOnce) {
  ReductionThreads threads(4, true, tuning::values_over_nodes({}));
  EXPECT_EQ(threads.count(), 4);
  std::mt19937_64 random(1);
  for (int call = 0; call < 50; ++call) {
    std::vector<Sum> sums;
    for (int slot = 0; slot < ReductionThreads::slots_each; ++slot)
      sums.emplace_back(random() % 60000);
    threads.begin(1, &nothing, nullptr);
    for (int slot = 0; slot < ReductionThreads::slots_each; ++slot) {
      Sum& own = sums[static_cast<std::size_t>(slot)];
      // The combination is in place, so a block that is combined twice is wrong.
      Combination what = own.combination();
      std::memcpy(what.result, what.a, what.count * sizeof(std::int64_t));
      what.a = what.result;
      threads.start(slot, what);
    }
    for (int slot = 0; slot < ReductionThreads::slots_each; ++slot) {
      while (!threads.finished(slot)) threads.help(slot);
    }
    threads.end();
    for (const Sum& one : sums) EXPECT_TRUE(one.right());
  }
}

TEST(ReductionThreads, ACallThatEndsEarlyLeavesNothingToTheNext) {
  ReductionThreads threads(3, true, tuning::values_over_nodes({}));
  for (int call = 0; call < 10; ++call) {
    Sum left(200000);
    threads.begin(1, &nothing, nullptr);
    threads.start(0, left.combination());
    threads.end();
    const Vector before = left.result;
    Sum next(30000);
    threads.begin(1, &nothing, nullptr);
    threads.start(1, next.combination());
    while (!threads.finished(1)) threads.help(0);
    EXPECT_FALSE(threads.help(0));
    threads.end();
    EXPECT_TRUE(next.right());
    EXPECT_EQ(left.result, before);
  }
}

// By whichever thread; the caller takes what no other has come for.
TEST(ReductionThreads, EachLaneIsWorkedOnce) {
  ReductionThreads threads(3, true, tuning::values_over_nodes({}));
  for (int call = 0; call < 100; ++call) {
    std::array<std::atomic<int>, 3> worked{};
    threads.begin(
        3,
        [](void* object, int lane) {
          (*static_cast<std::array<std::atomic<int>, 3>*>(object))[static_cast<std::size_t>(lane)]
              .fetch_add(1);
        },
        &worked);
    while (const int lane = threads.take_lane())
      worked[static_cast<std::size_t>(lane)].fetch_add(1);
    threads.end();
    EXPECT_EQ(worked[0].load(), 0);
    EXPECT_EQ(worked[1].load(), 1);
    EXPECT_EQ(worked[2].load(), 1);
  }
}

TEST(ReductionThreads, AChildOfAForkEndsThemWithoutTheirThreads) {
  auto threads = std::make_unique<ReductionThreads>(2, true, tuning::values_over_nodes({}));
  const pid_t child = fork();
  if (child == 0) {
    alarm(10);
    threads.reset();
    _exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(ReductionThreads, TheNumberOfThreadsIsChecked) {
  EXPECT_EQ(wished_threads(), 0);
  setenv("ROPEWALK_REDUCTION_THREADS", "3", 1);
  EXPECT_EQ(wished_threads(), 3);
  setenv("ROPEWALK_REDUCTION_THREADS", "65", 1);
  EXPECT_THROW(wished_threads(), Error);
  unsetenv("ROPEWALK_REDUCTION_THREADS");
  EXPECT_EQ(checked_threads(0), 0);
  EXPECT_THROW(checked_threads(-1), Error);
  EXPECT_THROW(checked_threads(65), Error);
}

TEST(Nodes, TheWishForMovementsIsChecked) {
  EXPECT_FALSE(wishes_all_sizes());
  setenv("ROPEWALK_MOVEMENTS", "nodes", 1);
  EXPECT_TRUE(wishes_all_sizes());
  setenv("ROPEWALK_MOVEMENTS", "Nodes", 1);
  EXPECT_THROW(wishes_all_sizes(), Error);
  unsetenv("ROPEWALK_MOVEMENTS");
}

}  // namespace
}  // namespace ropewalk::collectives::nodes
