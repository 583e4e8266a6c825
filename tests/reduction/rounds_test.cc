// The effect of a round of a plan on the next one, and averages over pretended nodes. Each of these
// tests was seen to fail when the code was broken by hand.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <string>
#include <vector>

#include "ropewalk/reduction_plan.hpp"
#include "support/thread_mpi.hpp"

namespace ropewalk::test {
namespace {

constexpr auto f32 = ElementType::float32;

float* floats(const ReductionPlan& plan, int tensor) {
  return static_cast<float*>(plan.data(tensor));
}

class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

TEST(Rounds, OneTensorMayStartSeveralBuckets) {
  run_ranks(2, [](int) {
    ReductionPlan plan(Communicator::world(), {{4, f32}, {8, f32}},
                       {.fuse_bytes = 0, .thread = false});
    for (const int tensor : {0, 1}) floats(plan, tensor)[3] = 1;
    plan.ready(1);
    plan.ready(0);
    plan.wait();
    EXPECT_EQ(floats(plan, 0)[3], 2.0F);
    EXPECT_EQ(floats(plan, 1)[3], 2.0F);
  });
}

TEST(Rounds, StartLeavesAloneWhatThisRoundHasReduced) {
  run_ranks(2, [](int) {
    ReductionPlan plan(Communicator::world(), {{4, f32}, {8, f32}},
                       {.fuse_bytes = 0, .thread = false});
    for (const int tensor : {0, 1}) floats(plan, tensor)[3] = 1;
    plan.ready(0);
    plan.test();  // reduces it
    EXPECT_EQ(floats(plan, 0)[3], 2.0F);
    plan.start();
    plan.wait();
    EXPECT_EQ(floats(plan, 0)[3], 2.0F);
    EXPECT_EQ(floats(plan, 1)[3], 2.0F);
  });
}

TEST(Rounds, AHandleKnowsItsOwnRoundOnly) {
  run_ranks(1, [](int) {
    ReductionPlan plan(Communicator::world(), {{4, f32}}, {.thread = false});
    PendingReduction first = plan.start(0);
    first.wait();
    PendingReduction second = plan.start(0);
    EXPECT_TRUE(first.test());
    first.wait();
    // The second has not been reduced: its buffers are still the plan's.
    EXPECT_THROW(plan.bind(0, nullptr, nullptr), Error);
    second.wait();
    plan.bind(0, nullptr, nullptr);
  });
}

// Buckets in different orders are an error of this round, told once, and of no later one.
TEST(Rounds, AnErrorThatNobodyAskedForIsForgottenByTheNextStart) {
  const Variable nodes("ROPEWALK_NODES", "1");
  run_ranks(2, [](int rank) {
    ReductionPlan plan(Communicator::world(), {{4, f32}, {4, f32}},
                       {.fuse_bytes = 0, .thread = false});
    plan.start(rank);
    PendingReduction last = plan.start(1 - rank);
    EXPECT_THROW(last.wait(), Error);
    EXPECT_NO_THROW(plan.reduce());
  });
}

TEST(Rounds, TestTellsOfErrors) {
  const Variable nodes("ROPEWALK_NODES", "1");
  run_ranks(2, [](int rank) {
    ReductionPlan plan(Communicator::world(), {{4, f32}, {4, f32}},
                       {.fuse_bytes = 0, .thread = false});
    plan.start(rank);
    plan.start(1 - rank);
    bool told = false;
    for (int bucket = 0; bucket < 4 && !told; ++bucket) {
      try {
        plan.test();
      } catch (const Error&) {
        told = true;
      }
    }
    EXPECT_TRUE(told);
  });
}

// Long enough for a ring, by every way there is; with one rank on a node and with several.
TEST(AveragesOverNodes, AreDividedOnceByEveryAlgorithm) {
  constexpr std::size_t count = 100003;
  for (const char* layout : {"1", "2,1"}) {
    for (const char* algorithm : {"ring", "halving", "doubling", "flat", "mpi", "whole"}) {
      const Variable nodes("ROPEWALK_NODES", layout);
      const Variable wish("ROPEWALK_ALLREDUCE", algorithm);
      run_ranks(3, [&](int rank) {
        std::vector<float> input(count, static_cast<float>(3 * rank));
        std::vector<float> output(count);
        ReductionPlan plan(Communicator::world(), {{count, f32, input.data(), output.data()}},
                           {.average = true, .threads = 2});
        plan.reduce();
        const auto wrong = std::ranges::count_if(output, [](float value) { return value != 3.0F; });
        EXPECT_EQ(wrong, 0) << layout << ", " << algorithm << ", rank " << rank;
        EXPECT_EQ(input[count - 1], static_cast<float>(3 * rank));
      });
    }
  }
}

// Their sum is more than float16 holds.
TEST(AveragesOverNodes, OfHalvesAreDividedBeforeTheyAreRounded) {
  const Variable nodes("ROPEWALK_NODES", "1");
  const Variable wish("ROPEWALK_ALLREDUCE", "ring");
  run_ranks(2, [](int) {
    constexpr std::size_t count = 200000;
    ReductionPlan plan(Communicator::world(), {{count, ElementType::float16}}, {.average = true});
    auto* values = static_cast<std::uint16_t*>(plan.data(0));
    std::fill_n(values, count, std::uint16_t{0x7b00});  // 57344
    plan.reduce();
    EXPECT_EQ(values[0], 0x7b00);
    EXPECT_EQ(values[count - 1], 0x7b00);
  });
}

TEST(Plans, RefuseMoreThreadsThanThereMayBe) {
  run_ranks(2, [](int) {
    EXPECT_THROW(ReductionPlan(Communicator::world(), {{4, f32}}, {.threads = 65}), Error);
  });
}

}  // namespace
}  // namespace ropewalk::test
