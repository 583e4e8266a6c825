// Tests plans on ranks as threads: random ones against loops, and what is refused.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

#include "reduction/random_cases.hpp"
#include "ropewalk/memory.hpp"
#include "support/thread_mpi.hpp"

namespace ropewalk::test {
namespace {

constexpr auto f32 = ElementType::float32;

class RandomPlans : public testing::TestWithParam<int> {};

TEST_P(RandomPlans, GiveWhatLoopsGive) {
  run_ranks(GetParam(), [&](int rank) {
    std::mt19937_64 random(4000 + static_cast<unsigned>(GetParam()));
    for (int trial = 0; trial < 100 / (GetParam() + 1); ++trial) {
      const PlanCase drawn = draw_plan(random);
      ASSERT_EQ(run_plan(Communicator::world(), drawn), "") << "rank " << rank << ", " << trial;
    }
  });
}
INSTANTIATE_TEST_SUITE_P(Ranks, RandomPlans, testing::Values(1, 2, 3, 5),
                         testing::PrintToStringParamName());

// On one node no thread of the plan calls MPI, so none need be allowed to.
TEST(Plans, HaveAThreadBelowThreadMultipleOnOneNode) {
  RunOptions options;
  options.level = mpi::ThreadLevel::funneled;
  run_ranks(
      3,
      [](int) {
        std::mt19937_64 random(5);
        for (int trial = 0; trial < 10; ++trial) {
          const PlanCase drawn = draw_plan(random);
          ASSERT_EQ(run_plan(Communicator::world(), drawn), "");
        }
        ReductionPlan plan(Communicator::world(), {{10, f32}});
        EXPECT_TRUE(plan.has_thread());
      },
      options);
}

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}
void expect_error(const std::function<void()>& call, const std::string& part) {
  const std::string found = message_of(call);
  EXPECT_NE(found.find(part), std::string::npos) << found;
}

TEST(Plans, RefuseJointly) {
  run_ranks(3, [](int rank) {
    const Communicator world = Communicator::world();
    const std::size_t other = rank == 2 ? 5 : 4;
    expect_error(
        [&] {
          ReductionPlan(world, {{4, f32}, {other, f32}});
        },
        "tensors: number 1: count: from 4 to 5");
    expect_error(
        [&] {
          ReductionPlan(world, std::vector<PlanTensor>(other, {1, f32}));
        },
        "tensors: from 4 to 5");
    expect_error(
        [&] {
          ReductionPlan(world, {{4, f32}}, {.average = rank == 1});
        },
        "average: from 0 to 1");
    expect_error(
        [&] {
          ReductionPlan(world, {{4, ElementType::int32}}, {.average = true});
        },
        "op: average is not defined for tensor 0 of type int32");
    expect_error(
        [&] {
          ReductionPlan(world, {{4, f32}}, {.op = ReductionOp::band});
        },
        "op: band is not defined");
    float buffer[4];
    expect_error(
        [&] {
          ReductionPlan(world, {{4, f32, rank == 1 ? buffer : nullptr}});
        },
        "output: null for tensor 0");
    expect_error([&] { ReductionPlan(world, {{4, f32}}, {.bucket_bytes = 0}); }, "bucket_bytes: 0");
  });
}

TEST(Plans, RefuseWhatIsUnderWay) {
  run_ranks(2, [](int rank) {
    ReductionPlan plan(Communicator::world(), {{4, f32}, {8, f32}}, {.fuse_bytes = 0});
    PendingReduction pending = plan.start(0);
    if (rank == 0) {  // the other has not come yet, or not finished
      mpi::barrier(mpi::comm_world());
    }
    expect_error([&] { plan.start(7); }, "bucket: 7, expected 0 to 1");
    expect_error([&] { plan.ready(2); }, "tensor: 2, expected 0 to 1");
    expect_error([&] { plan.bind(1, plan.data(1), nullptr); }, "output: null for tensor 1");
    if (rank == 1) mpi::barrier(mpi::comm_world());
    pending.wait();
    pending.wait();
    EXPECT_TRUE(pending.test());
    plan.wait();
  });
}

// Without a thread nothing happens between start and wait, so every order is seen.
TEST(Plans, RefuseASecondStart) {
  run_ranks(2, [](int) {
    ReductionPlan plan(Communicator::world(), {{4, f32}, {8, f32}},
                       {.fuse_bytes = 0, .thread = false});
    PendingReduction pending = plan.start();
    expect_error([&] { plan.start(1); }, "start: bucket 1 is under way already");
    expect_error([&] { plan.start(); }, "start: every bucket is under way already");
    expect_error([&] { plan.bind(0, nullptr, nullptr); }, "bind: bucket 0 is under way");
    pending.wait();
    plan.start(1);
    plan.start();  // the other
    plan.wait();
  });
}

TEST(Plans, ARoundNeedsEveryTensor) {
  run_ranks(2, [](int) {
    ReductionPlan plan(Communicator::world(), {{4, f32}, {8, f32}, {8, f32}}, {.fuse_bytes = 0});
    plan.ready(0);
    plan.ready(2);
    expect_error([&] { plan.ready(2); }, "tensor: 2 is ready already");
    expect_error([&] { plan.wait(); }, "bucket 1 was not started, since tensor 1 is not ready");
    plan.ready(1);  // another round
    plan.start();   // and the rest of it
    plan.wait();
    plan.reduce();
  });
}

TEST(Plans, AnotherOrderIsAnErrorThatNamesIt) {
  run_ranks(3, [](int rank) {
    ReductionPlan plan(Communicator::world(), {{4, f32}, {4, f32}}, {.fuse_bytes = 0});
    PendingReduction first = plan.start(rank == 1 ? 1 : 0);
    PendingReduction second = plan.start(rank == 1 ? 0 : 1);
    const std::string found = message_of([&] { first.wait(); });
    EXPECT_NE(found.find("bucket 0"), std::string::npos) << found;
    EXPECT_NE(found.find("bucket 1"), std::string::npos) << found;
    EXPECT_NE(message_of([&] { second.wait(); }), "no error");
    // Both ranks have left both calls: the plan can be used.
    float values[4] = {1, 1, 1, 1};
    plan.bind(0, nullptr, values);
    plan.reduce();
    EXPECT_EQ(values[3], 3.0F);
  });
}

// ---- over nodes that are pretended (docs/reference/environment.md)

class PretendedNodes {
 public:
  explicit PretendedNodes(const char* layout) { setenv("ROPEWALK_NODES", layout, 1); }
  ~PretendedNodes() { unsetenv("ROPEWALK_NODES"); }
  PretendedNodes(const PretendedNodes&) = delete;
  PretendedNodes& operator=(const PretendedNodes&) = delete;
};

TEST(PlansOverNodes, GiveWhatLoopsGive) {
  for (const char* layout : {"1", "2,1", "round:2"}) {
    const PretendedNodes nodes(layout);
    run_ranks(4, [&](int rank) {
      std::mt19937_64 random(77);
      for (int trial = 0; trial < 8; ++trial) {
        const PlanCase drawn = draw_plan(random);
        ASSERT_EQ(run_plan(Communicator::world(), drawn), "") << layout << ", rank " << rank;
      }
    });
  }
}

TEST(PlansOverNodes, HaveNoThreadBelowThreadMultiple) {
  const PretendedNodes nodes("1");
  RunOptions options;
  options.level = mpi::ThreadLevel::funneled;
  run_ranks(
      2,
      [](int) {
        ReductionPlan plan(Communicator::world(), {{1000, f32}}, {.average = true});
        EXPECT_EQ(plan.nodes(), 2);
        EXPECT_FALSE(plan.has_thread());
        static_cast<float*>(plan.data(0))[999] = 3;
        plan.ready(0);
        plan.wait();
        EXPECT_EQ(static_cast<float*>(plan.data(0))[999], 3.0F);
      },
      options);
}

TEST(PlansOverNodes, AnotherOrderIsAnErrorThatNamesIt) {
  const PretendedNodes nodes("1");
  run_ranks(3, [](int rank) {
    ReductionPlan plan(Communicator::world(), {{4, f32}, {4, f32}}, {.fuse_bytes = 0});
    PendingReduction first = plan.start(rank == 1 ? 1 : 0);
    PendingReduction second = plan.start(rank == 1 ? 0 : 1);
    expect_error([&] { first.wait(); }, "ranks have started buckets 0 to 1");
    expect_error([&] { second.wait(); }, "ranks have started buckets 0 to 1");
    plan.reduce();
  });
}

TEST(Plans, EndWhileUnderWay) {
  run_ranks(3, [](int) {
    for (const bool thread : {true, false}) {
      std::vector<float> values(5000, 1);
      {
        ReductionPlan plan(Communicator::world(), {{5000, f32, nullptr, values.data()}},
                           {.thread = thread});
        plan.start();
      }
      EXPECT_EQ(values[4999], 3.0F);
    }
  });
}

// What an exception leaves undone must not leave the others waiting.
TEST(Plans, AnExceptionGivesUpWhatHasNotBegun) {
  run_ranks(2, [](int rank) {
    ReductionPlan other(Communicator::world(), {{4, f32}});
    {
      auto plan =
          std::make_unique<ReductionPlan>(Communicator::world(), std::vector<PlanTensor>{{4, f32}},
                                          ReductionPlanOptions{.thread = false});
      if (rank == 0) {
        try {
          const std::unique_ptr<ReductionPlan> ends = std::move(plan);
          ends->start();
          throw std::runtime_error("the application's");
        } catch (const std::runtime_error&) {
        }
      } else {
        plan->start();
        expect_error([&] { plan->wait(); }, "refused");
      }
    }
    other.reduce();
  });
}

TEST(Plans, MayBeMovedAndBoundAnew) {
  run_ranks(2, [](int rank) {
    Buffer<double> a(1000);
    std::vector<double> b(1000);
    ReductionPlan plan(Communicator::world(), {{1000, ElementType::float64, a.data(), b.data()}},
                       {.average = true});
    ReductionPlan moved = std::move(plan);
    for (double& value : a) value = rank;
    moved.reduce();
    EXPECT_EQ(b[999], 0.5);
    moved.bind(0, in_place, a.data());
    moved.reduce();
    EXPECT_EQ(a[0], 0.5);
    moved.bind(0, nullptr, nullptr);  // fused: it has memory of the plan
    static_cast<double*>(moved.data(0))[17] = 4;
    moved.reduce();
    EXPECT_EQ(static_cast<double*>(moved.data(0))[17], 4.0);
  });
}

TEST(Plans, OfHalvesDoNotOverflowOnTheWayToTheirAverage) {
  run_ranks(3, [](int) {
    ReductionPlan plan(Communicator::world(), {{3000, ElementType::float16}}, {.average = true});
    auto* values = static_cast<std::uint16_t*>(plan.data(0));
    std::fill_n(values, 3000, std::uint16_t{0x7b00});  // 57344
    plan.reduce();
    EXPECT_EQ(values[0], 0x7b00);
    EXPECT_EQ(values[2999], 0x7b00);
  });
}

#ifndef __SANITIZE_THREAD__  // it may hold locks of other threads in the child
TEST(Plans, AreRefusedInTheChildOfAFork) {
  run_ranks(1, [](int) {
    auto plan =
        std::make_unique<ReductionPlan>(Communicator::world(), std::vector<PlanTensor>{{4, f32}});
    plan->reduce();
    const pid_t child = fork();
    if (child == 0) {
      bool refused = message_of([&] { plan->start(); }).find("before a fork") != std::string::npos;
      refused &= message_of([&] { plan->wait(); }).find("before a fork") != std::string::npos;
      plan.reset();  // must not wait for a thread that is not there
      _exit(refused ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    plan->reduce();
  });
}
#endif

TEST(Plans, OfNothing) {
  run_ranks(2, [](int) {
    ReductionPlan none(Communicator::world(), {});
    EXPECT_EQ(none.buckets(), 0);
    none.reduce();
    none.start().wait();
    EXPECT_TRUE(none.test());
    ReductionPlan empty(Communicator::world(), {{0, f32}, {0, ElementType::float64}});
    empty.reduce();
    empty.ready(0);
    empty.ready(1);
    empty.wait();
  });
}

}  // namespace
}  // namespace ropewalk::test
