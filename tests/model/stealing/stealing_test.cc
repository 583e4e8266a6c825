// Every schedule of small loops: each block is run once, in its own loop.
#include <gtest/gtest.h>

#include <iostream>
#include <string>

#include "model/stealing/search.hpp"

namespace ropewalk::model::stealing {

void PrintTo(const Case& about, std::ostream* out) {
  *out << about.workers << " workers, " << about.sharing << " of them with a share of "
       << about.blocks << " blocks, " << about.loops << " loops";
}

namespace {

// Fibers are one thread for the thread sanitizer, which only makes the search slow.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool slow = true;
#else
constexpr bool slow = false;
#endif

class Stealing : public testing::TestWithParam<Case> {};

TEST_P(Stealing, EveryBlockIsRunOnce) {
  const Case& about = GetParam();
  if (slow && about.workers > 2) GTEST_SKIP() << "too slow under sanitizers";
  const Result result = explore(about);
  EXPECT_EQ(result.violation, "") << result.schedule;
  EXPECT_GT(result.states, 1U);
  std::cout << result.states << " states in " << result.runs << " runs\n";
}

INSTANTIATE_TEST_SUITE_P(Model, Stealing,
                         testing::Values(Case{2, 2, 4, 1}, Case{2, 1, 5, 1}, Case{2, 2, 3, 2},
                                         Case{2, 1, 2, 3}, Case{3, 3, 2, 1}, Case{3, 1, 2, 1},
                                         Case{3, 1, 1, 2}),
                         [](const auto& about) {
                           const Case& one = about.param;
                           return std::to_string(one.workers) + "_workers_" +
                                  std::to_string(one.sharing) + "_sharing_" +
                                  std::to_string(one.blocks) + "_blocks_" +
                                  std::to_string(one.loops) + "_loops";
                         });

}  // namespace
}  // namespace ropewalk::model::stealing
