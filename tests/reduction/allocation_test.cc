// A reduction allocates nothing: every operator new of this program is counted, but for those that
// the MPI of threads makes for itself.
#include <gtest/gtest.h>

#include <vector>

#include "mpi/library.hpp"
#include "ropewalk/memory.hpp"
#include "ropewalk/reduction_plan.hpp"
#include "support/counted_allocations.hpp"
#include "support/thread_mpi.hpp"

namespace ropewalk::test {
namespace {

void count_rounds(int rank, ReductionPlan& plan) {
  const auto round = [&] {
    plan.reduce();
    for (int tensor = 0; tensor < plan.tensors(); ++tensor) plan.ready(tensor);
    plan.wait();
    PendingReduction pending = plan.start();
    while (!pending.test()) {
    }
  };
  round();
  const std::uint64_t before = Arena::process().statistics().allocations;
  at_rank_zero(rank, begin_counting);
  for (int i = 0; i < 3; ++i) round();
  at_rank_zero(rank, [&] {
    EXPECT_EQ(end_counting(), 0);
    EXPECT_EQ(Arena::process().statistics().allocations, before);
  });
}

TEST(Allocation, ReductionsMakeNone) {
  const mpi::Library* plain = nullptr;
  run_ranks(3, [&](int rank) {
    at_rank_zero(rank, [&] {
      plain = &mpi::library();
      mpi::exchange_library(marked_library(*plain));
    });
    for (const bool thread : {true, false}) {
      std::vector<float> small(100);
      Buffer<float> large(100000);
      ReductionPlan plan(Communicator::world(),
                         {{100, ElementType::float32, nullptr, small.data()},
                          {50, ElementType::bfloat16},
                          {100000, ElementType::float32, nullptr, large.data()}},
                         {.average = true, .thread = thread});
      count_rounds(rank, plan);
    }
    at_rank_zero(rank, [&] { mpi::exchange_library(plain); });
  });
}

}  // namespace
}  // namespace ropewalk::test
