// Tries every schedule of rounds whose work the ranks share, and tests that flags stored or loaded
// with less order than they need are found.
#include <gtest/gtest.h>

#include <iostream>
#include <string>

#include "model/rounds/scenarios.hpp"

namespace ropewalk::model::rounds {
namespace {

class Rounds : public testing::TestWithParam<Scenario> {};

TEST_P(Rounds, AreRightInEverySchedule) {
  const Result result = explore(GetParam());
  EXPECT_EQ(result.violation, "") << result.schedule;
  EXPECT_GT(result.schedules, 1);
  std::cout << result.schedules << " schedules, through " << result.states << " states in "
            << result.runs << " runs\n";
}

INSTANTIATE_TEST_SUITE_P(Model, Rounds, testing::ValuesIn(scenarios().begin(), scenarios().end()),
                         [](const auto& about) { return std::string(about.param.name); });

struct Weakening {
  const char* flag;
  Side side;
};

class RelaxedRounds : public testing::TestWithParam<Weakening> {};

TEST_P(RelaxedRounds, AreFound) {
  const Weakening& weakening = GetParam();
  const Result result = explore(*find_scenario("one_task_each"),
                                {.weakened = weakening.flag, .weakened_side = weakening.side});
  EXPECT_GT(result.weakened, 0U);
  EXPECT_NE(result.violation, "");
  std::cout << result.violation << "\n";
}

INSTANTIATE_TEST_SUITE_P(
    Model, RelaxedRounds,
    testing::Values(Weakening{"begun", Side::release}, Weakening{"begun", Side::acquire},
                    Weakening{"done", Side::release}, Weakening{"done", Side::acquire}),
    [](const auto& about) {
      const Weakening& one = about.param;
      return std::string(one.flag) + (one.side == Side::release ? "_stored" : "_loaded");
    });

}  // namespace
}  // namespace ropewalk::model::rounds
