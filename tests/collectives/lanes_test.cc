// The lanes of a rank: each block is combined once, whoever takes it and however a call ends.
#include "collectives/nodes/lanes.hpp"

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

#include "collectives/nodes/exchange.hpp"

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

TEST(Lanes, EachBlockIsCombinedOnce) {
  Lanes lanes(4, true);
  EXPECT_EQ(lanes.threads(), 4);
  std::mt19937_64 random(1);
  for (int call = 0; call < 50; ++call) {
    std::vector<Sum> sums;
    for (int slot = 0; slot < Lanes::slots_each; ++slot) sums.emplace_back(random() % 60000);
    lanes.begin(1, &nothing, nullptr);
    for (int slot = 0; slot < Lanes::slots_each; ++slot) {
      Sum& own = sums[static_cast<std::size_t>(slot)];
      // In place: a block that is combined twice is wrong.
      Combination what = own.combination();
      std::memcpy(what.result, what.a, what.count * sizeof(std::int64_t));
      what.a = what.result;
      lanes.start(slot, what);
    }
    for (int slot = 0; slot < Lanes::slots_each; ++slot) {
      while (!lanes.finished(slot)) lanes.help(slot);
    }
    lanes.end();
    for (const Sum& one : sums) EXPECT_TRUE(one.right());
  }
}

TEST(Lanes, ACallThatEndsEarlyLeavesNothingToTheNext) {
  Lanes lanes(3, true);
  for (int call = 0; call < 10; ++call) {
    Sum left(200000);
    lanes.begin(1, &nothing, nullptr);
    lanes.start(0, left.combination());
    lanes.end();
    const Vector before = left.result;
    Sum next(30000);
    lanes.begin(1, &nothing, nullptr);
    lanes.start(1, next.combination());
    while (!lanes.finished(1)) lanes.help(0);
    EXPECT_FALSE(lanes.help(0));
    lanes.end();
    EXPECT_TRUE(next.right());
    EXPECT_EQ(left.result, before);
  }
}

// By whichever thread; the caller takes what no other has come for.
TEST(Lanes, EachLaneIsWorkedOnce) {
  Lanes lanes(3, true);
  for (int call = 0; call < 100; ++call) {
    std::array<std::atomic<int>, 3> worked{};
    lanes.begin(
        3,
        [](void* object, int lane) {
          (*static_cast<std::array<std::atomic<int>, 3>*>(object))[static_cast<std::size_t>(lane)]
              .fetch_add(1);
        },
        &worked);
    while (const int lane = lanes.take_lane()) worked[static_cast<std::size_t>(lane)].fetch_add(1);
    lanes.end();
    EXPECT_EQ(worked[0].load(), 0);
    EXPECT_EQ(worked[1].load(), 1);
    EXPECT_EQ(worked[2].load(), 1);
  }
}

TEST(Lanes, AChildOfAForkEndsThemWithoutTheirThreads) {
  auto lanes = std::make_unique<Lanes>(2, true);
  const pid_t child = fork();
  if (child == 0) {
    alarm(10);
    lanes.reset();
    _exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(Lanes, TheNumberOfThreadsIsChecked) {
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
