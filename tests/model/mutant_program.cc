// mutant_program SCENARIO RANKS [TEXT]: exits with 0 when the search finds a violation in the
// scenario, described by the text. It is linked with code that was broken on purpose
// (CMakeLists.txt).
#include <cstdio>
#include <cstdlib>
#include <string>

#include "model/scenarios.hpp"

int main(int count, char** arguments) {
  namespace model = ropewalk::model;
  const model::Scenario* scenario = count >= 3 ? model::find_scenario(arguments[1]) : nullptr;
  const int ranks = count >= 3 ? std::atoi(arguments[2]) : 0;
  if (scenario == nullptr || ranks < 2 || ranks > model::max_ranks) {
    std::fprintf(stderr, "usage: %s SCENARIO RANKS [TEXT]\n", arguments[0]);
    return 2;
  }
  const model::Result result = model::explore(ranks, *scenario);
  std::printf("%s, %d ranks: %zu runs, %zu states, %.3g schedules\n%s\n%s", scenario->name, ranks,
              result.runs, result.states, result.schedules,
              result.violation.empty() ? "no violation: the broken code passes, or is not broken"
                                       : result.violation.c_str(),
              result.schedule.c_str());
  const std::string expected = count > 3 ? arguments[3] : "";
  const bool found =
      !result.violation.empty() && result.violation.find(expected) != std::string::npos;
  return found ? 0 : 1;
}
