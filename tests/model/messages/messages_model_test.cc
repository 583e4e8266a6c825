// Tries every schedule of short programs of messages, on the real channel, and tests that flags
// stored or loaded with less order than they need are found.
#include <gtest/gtest.h>

#include <iostream>
#include <string>

#include "model/messages/scenarios.hpp"

namespace ropewalk::model::messages {
namespace {

class Messages : public testing::TestWithParam<Scenario> {};

TEST_P(Messages, ComeInEverySchedule) {
  const Result result = explore(GetParam());
  EXPECT_EQ(result.violation, "") << result.schedule;
  EXPECT_GT(result.schedules, 1);
  std::cout << result.schedules << " schedules, through " << result.states << " states in "
            << result.runs << " runs\n";
}

INSTANTIATE_TEST_SUITE_P(Model, Messages, testing::ValuesIn(scenarios().begin(), scenarios().end()),
                         [](const auto& about) { return std::string(about.param.name); });

struct Weakening {
  const char* flag;
  const char* scenario;
};
std::ostream& operator<<(std::ostream& out, const Weakening& weakening) {
  return out << weakening.flag << "_in_" << weakening.scenario;
}

class RelaxedMessages : public testing::TestWithParam<std::tuple<Side, Weakening>> {};

TEST_P(RelaxedMessages, AreFound) {
  const auto& [side, weakening] = GetParam();
  const Scenario* scenario = find_scenario(weakening.scenario);
  ASSERT_NE(scenario, nullptr);
  const Result result = explore(*scenario, {.weakened = weakening.flag, .weakened_side = side});
  EXPECT_GT(result.weakened, 0U);
  EXPECT_NE(result.violation, "");
  std::cout << result.violation << "\n";
}

INSTANTIATE_TEST_SUITE_P(
    Model, RelaxedMessages,
    testing::Combine(
        testing::Values(Side::release, Side::acquire),
        testing::Values(Weakening{"number", "cells_go_round"},
                        Weakening{"number", "slots_go_round"}, Weakening{"taken", "cells_go_round"},
                        Weakening{"taken", "slots_go_round"}, Weakening{"ring", "cells_go_round"},
                        Weakening{"state", "offers_by_both"},
                        Weakening{"state", "offers_by_receiver"}, Weakening{"state", "pipelines"},
                        Weakening{"sent", "offers_by_both"}, Weakening{"sent", "offers_by_sender"},
                        Weakening{"sent", "pipelines"}, Weakening{"received", "pipelines"},
                        Weakening{"ended", "end_of_sender"})),
    [](const auto& about) {
      return testing::PrintToString(std::get<1>(about.param)) +
             (std::get<0>(about.param) == Side::release ? "_stored" : "_loaded");
    });

}  // namespace
}  // namespace ropewalk::model::messages
