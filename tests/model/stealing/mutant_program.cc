// mutant_program WORKERS SHARING BLOCKS LOOPS TEXT: exits with 0 when the search finds a violation
// described by the text. It is linked with code that was broken on purpose (CMakeLists.txt).
#include <cstdio>
#include <cstdlib>
#include <string>

#include "model/stealing/search.hpp"

int main(int count, char** arguments) {
  namespace stealing = ropewalk::model::stealing;
  if (count != 6) return 2;
  const auto number = [&](int index) { return std::atoi(arguments[index]); };
  const auto result = stealing::explore({number(1), number(2), number(3), number(4)});
  std::printf("%zu runs, %zu states: %s\n%s", result.runs, result.states,
              result.violation.empty() ? "no violation" : result.violation.c_str(),
              result.schedule.c_str());
  return result.violation.find(arguments[5]) != std::string::npos ? 0 : 1;
}
