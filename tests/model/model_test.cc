// Tries every schedule of short sequences of collectives, on the real team, and tests that flags
// stored or loaded with less order than they need are found.
#include <gtest/gtest.h>

#include <iostream>
#include <string>
#include <tuple>

#include "model/scenarios.hpp"

namespace ropewalk::model {
namespace {

std::string joined(const std::string& name, int number) {
  return name + "_" + std::to_string(number);
}

// All ranks are fibers of one thread, so the thread sanitizer sees nothing here; it only makes the
// larger searches slow.
#if defined(__SANITIZE_THREAD__)
constexpr bool slow = true;
#else
constexpr bool slow = false;
#endif

// ---- the protocol as it is

class Schedules : public testing::TestWithParam<std::tuple<int, Scenario>> {};

TEST_P(Schedules, NoneIsViolated) {
  const auto& [ranks, scenario] = GetParam();
  if (slow && ranks > 2) GTEST_SKIP() << "too slow under the thread sanitizer";
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
                           return joined(std::get<1>(about.param).name, std::get<0>(about.param));
                         });

// ---- the search itself: merging states and storing early lose no schedule

class Reduction : public testing::TestWithParam<Scenario> {};

TEST_P(Reduction, EndsWhereAllSchedulesEnd) {
  if (slow) GTEST_SKIP() << "too slow under the thread sanitizer";
  const Result reduced = explore(2, GetParam());
  const Result full = explore(2, GetParam(), {.every_step = true});
  EXPECT_EQ(full.violation, "") << full.schedule;
  EXPECT_EQ(full.runs, full.schedules);
  EXPECT_GT(full.runs, 50 * reduced.runs);
  EXPECT_EQ(reduced.ends, full.ends);
  EXPECT_EQ(reduced.all_ends, full.all_ends);
  std::cout << full.runs << " schedules one by one, " << reduced.runs << " runs reduced, "
            << full.ends << " ends\n";
}

INSTANTIATE_TEST_SUITE_P(Model, Reduction,
                         testing::ValuesIn(tiny_scenarios().begin(), tiny_scenarios().end()),
                         [](const auto& about) { return std::string(about.param.name); });

// ---- flags without the order they need

struct Weakening {
  const char* flag;
  Side side;
  const char* scenario;
};
std::ostream& operator<<(std::ostream& out, const Weakening& weakening) {
  return out << weakening.flag << (weakening.side == Side::release ? "_stored" : "_loaded")
             << "_relaxed";
}

class Relaxed : public testing::TestWithParam<Weakening> {};

TEST_P(Relaxed, IsFound) {
  const Scenario* scenario = find_scenario(GetParam().scenario);
  ASSERT_NE(scenario, nullptr);
  const Result result =
      explore(2, *scenario, {.weakened = GetParam().flag, .weakened_side = GetParam().side});
  EXPECT_GT(result.weakened, 0U);
  EXPECT_NE(result.violation, "");
  std::cout << result.violation << "\n";
}

INSTANTIATE_TEST_SUITE_P(
    Model, Relaxed,
    testing::Values(Weakening{"sequence", Side::release, "broadcasts_of_one_root"},
                    Weakening{"sequence", Side::acquire, "broadcasts_of_one_root"},
                    Weakening{"arrived", Side::release, "broadcasts_of_one_root"},
                    Weakening{"arrived", Side::acquire, "broadcasts_of_one_root"},
                    Weakening{"phase", Side::release, "mapped_allreduces"},
                    Weakening{"phase", Side::acquire, "mapped_allreduces"},
                    Weakening{"phase", Side::release, "staged_broadcasts"},
                    Weakening{"pieces", Side::release, "copied_movements"},
                    Weakening{"pieces", Side::acquire, "copied_movements"}),
    [](const auto& about) {
      return joined(testing::PrintToString(about.param), static_cast<int>(about.index));
    });

}  // namespace
}  // namespace ropewalk::model
