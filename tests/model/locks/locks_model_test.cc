// Tries every schedule of a lock of readers and writers, and tests that flags stored or loaded
// with less order than they need are found.
#include <gtest/gtest.h>

#include <iostream>
#include <string>

#include "model/locks/scenarios.hpp"

namespace ropewalk::model::locks {
namespace {

class Locks : public testing::TestWithParam<Scenario> {};

TEST_P(Locks, AreRightInEverySchedule) {
  const Result result = explore(GetParam());
  EXPECT_EQ(result.violation, "") << result.schedule;
  EXPECT_GT(result.schedules, 1);
  std::cout << result.schedules << " schedules, through " << result.states << " states in "
            << result.runs << " runs\n";
}

INSTANTIATE_TEST_SUITE_P(Model, Locks, testing::ValuesIn(scenarios().begin(), scenarios().end()),
                         [](const auto& about) { return std::string(about.param.name); });

struct Weakening {
  const char* flag;
  Side side;
};

class RelaxedLocks : public testing::TestWithParam<Weakening> {};

TEST_P(RelaxedLocks, AreFound) {
  const Weakening& weakening = GetParam();
  const Result result = explore(*find_scenario("writer_and_reader"),
                                {.weakened = weakening.flag, .weakened_side = weakening.side});
  EXPECT_GT(result.weakened, 0U);
  EXPECT_NE(result.violation, "");
  std::cout << result.violation << "\n";
}

INSTANTIATE_TEST_SUITE_P(
    Model, RelaxedLocks,
    testing::Values(Weakening{"entered", Side::release}, Weakening{"entered", Side::acquire},
                    Weakening{"left", Side::release}, Weakening{"left", Side::acquire}),
    [](const auto& about) {
      const Weakening& one = about.param;
      return std::string(one.flag) + (one.side == Side::release ? "_stored" : "_loaded");
    });

}  // namespace
}  // namespace ropewalk::model::locks
