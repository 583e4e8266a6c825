// If one rank cannot get memory, a mapping, a file or a thread when a plan is made, all ranks get
// an error; afterwards the ranks make a plan and reduce.
#include <vector>

#include "ropewalk/reduction_plan.hpp"
#include "support/injected_failures.hpp"

namespace ropewalk::test {
namespace {

constexpr int ranks = 3;

class PlanFailures : public testing::TestWithParam<int> {};  // the rank that fails
INSTANTIATE_TEST_SUITE_P(OnRank, PlanFailures, testing::Values(0, ranks - 1),
                         testing::PrintToStringParamName());

// Tensors of the plan's own memory, fused and not.
std::vector<PlanTensor> tensors(int) {
  return {{5, ElementType::float32}, {3, ElementType::float32}, {4000, ElementType::float64}};
}

void reduce(int, ReductionPlan& plan) {
  auto* data = static_cast<float*>(plan.data(1));
  for (int i = 0; i < 3; ++i) data[i] = static_cast<float>(plan.rank() + i);
  plan.reduce();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(data[i], static_cast<float>(3 + 3 * i));
}

TEST_P(PlanFailures, AreJoint) {
  for (const bool thread : {false, true}) {
    expect_joint_errors(
        ranks, GetParam(), tensors,
        [&](int, std::vector<PlanTensor>& list) {
          return ReductionPlan(Communicator::world(), list, {.fuse_bytes = 1024, .thread = thread});
        },
        reduce);
  }
}

TEST_P(PlanFailures, OfNodeCommunicatorsAreJoint) {
  expect_joint_errors(
      ranks, GetParam(), [](int) { return 0; },
      [](int, int&) { return Collectives(Communicator::world()); },
      [](int rank, Collectives& made) {
        int sum = 0;
        made.allreduce(&rank, &sum, 1, ElementType::int32, ReductionOp::sum);
        EXPECT_EQ(sum, 3);
      });
}

}  // namespace
}  // namespace ropewalk::test
