// Tries every schedule of messages that go through a slot of the drop-in, and tests that flags
// stored or loaded with less order than they need are found.
#include <gtest/gtest.h>

#include <iostream>
#include <string>

#include "model/envelope/scenarios.hpp"

namespace ropewalk::model::envelope {
namespace {

class Envelopes : public testing::TestWithParam<Scenario> {};

TEST_P(Envelopes, AreTakenInEverySchedule) {
  const Result result = explore(GetParam());
  EXPECT_EQ(result.violation, "") << result.schedule;
  EXPECT_GT(result.schedules, 1);
  std::cout << result.schedules << " schedules, through " << result.states << " states in "
            << result.runs << " runs\n";
}

INSTANTIATE_TEST_SUITE_P(Model, Envelopes,
                         testing::ValuesIn(scenarios().begin(), scenarios().end()),
                         [](const auto& about) { return std::string(about.param.name); });

struct Weakening {
  const char* flag;
  const char* scenario;
  Side side;
};

class RelaxedEnvelopes : public testing::TestWithParam<Weakening> {};

TEST_P(RelaxedEnvelopes, AreFound) {
  const Weakening& weakening = GetParam();
  const Scenario* scenario = find_scenario(weakening.scenario);
  ASSERT_NE(scenario, nullptr);
  const Result result =
      explore(*scenario, {.weakened = weakening.flag, .weakened_side = weakening.side});
  EXPECT_GT(result.weakened, 0U);
  EXPECT_NE(result.violation, "");
  std::cout << result.violation << "\n";
}

INSTANTIATE_TEST_SUITE_P(Model, RelaxedEnvelopes,
                         testing::Values(Weakening{"state", "receiver_copies", Side::release},
                                         Weakening{"state", "receiver_copies", Side::acquire},
                                         Weakening{"state", "both_copy", Side::release},
                                         Weakening{"state", "both_copy", Side::acquire},
                                         Weakening{"state", "sender_keeps", Side::release},
                                         Weakening{"state", "sender_keeps", Side::acquire},
                                         Weakening{"copied", "both_copy", Side::release},
                                         Weakening{"copied", "both_copy", Side::acquire}),
                         [](const auto& about) {
                           const Weakening& one = about.param;
                           return std::string(one.flag) + "_in_" + one.scenario +
                                  (one.side == Side::release ? "_stored" : "_loaded");
                         });

}  // namespace
}  // namespace ropewalk::model::envelope
