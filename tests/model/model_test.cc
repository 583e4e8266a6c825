// Every schedule of short sequences of collectives, on the real team; and that flags stored or
// loaded with less order than they need are found.
#include <gtest/gtest.h>

#include <iostream>
#include <tuple>

#include "model/scenarios.hpp"

namespace ropewalk::model {
namespace {

class Schedules : public testing::TestWithParam<std::tuple<int, Scenario>> {};

TEST_P(Schedules, AllAreProved) {
  const auto& [ranks, scenario] = GetParam();
  if (ranks > scenario.most_ranks) GTEST_SKIP() << "too many schedules for a test";
  const Result result = explore(ranks, scenario);
  EXPECT_EQ(result.violation, "") << result.schedule;
  EXPECT_GT(result.schedules, 1);
  std::cout << result.schedules << " schedules, through " << result.states << " states in "
            << result.runs << " runs\n";
}

INSTANTIATE_TEST_SUITE_P(Model, Schedules,
                         testing::Combine(testing::Values(2, 3),
                                          testing::ValuesIn(scenarios().begin(),
                                                            scenarios().end())),
                         [](const auto& about) {
                           return std::string(std::get<1>(about.param).name) + "_" +
                                  std::to_string(std::get<0>(about.param));
                         });

}  // namespace
}  // namespace ropewalk::model
