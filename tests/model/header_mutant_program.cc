// header_mutant_program SCENARIO [TEXT]: exits with 0 when the search finds a violation in the
// scenario, described by the text. It is linked with code that was broken on purpose
// (of_header.cmake), and with the scenarios that it is compiled for.
#include <cstdio>
#include <string>

#include MODEL_SCENARIOS

int main(int count, char** arguments) {
  namespace model = ropewalk::model;
  namespace scenarios = ropewalk::model::MODEL_NAMESPACE;
  const scenarios::Scenario* scenario =
      count >= 2 ? scenarios::find_scenario(arguments[1]) : nullptr;
  if (scenario == nullptr) {
    std::fprintf(stderr, "usage: %s SCENARIO [TEXT]\n", arguments[0]);
    return 2;
  }
  const model::Result result = scenarios::explore(*scenario);
  std::printf("%s: %zu runs, %zu states, %.3g schedules\n%s\n%s", scenario->name, result.runs,
              result.states, result.schedules,
              result.violation.empty() ? "no violation: the broken code passes, or is not broken"
                                       : result.violation.c_str(),
              result.schedule.c_str());
  const std::string expected = count > 2 ? arguments[2] : "";
  const bool found =
      !result.violation.empty() && result.violation.find(expected) != std::string::npos;
  return found ? 0 : 1;
}
