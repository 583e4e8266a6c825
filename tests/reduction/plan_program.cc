// plan_program CASES [SEED] makes random plans under a real MPI.
#include <cstdio>
#include <cstdlib>

#include "reduction/random_cases.hpp"
#include "ropewalk/process.hpp"

int main(int argc, char** argv) {
  using namespace ropewalk;
  const int cases = argc > 1 ? std::atoi(argv[1]) : 40;
  const unsigned long seed = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 1;
  const Process process;
  std::mt19937_64 random(seed);
  int wrong = 0;
  for (int i = 0; i < cases; ++i) {
    const test::PlanCase drawn = test::draw_plan(random);
    const std::string found = test::run_plan(process.world(), drawn);
    if (found.empty()) continue;
    std::printf("rank %d, case %d: %s\n", process.world().rank(), i, found.c_str());
    ++wrong;
  }
  return wrong == 0 ? 0 : 1;
}
