// random_program CASES SEED makes random collectives on the ranks of a real MPI.
#include <cstdio>
#include <cstdlib>

#include "collectives/cases.hpp"
#include "mpi/mpi.hpp"
#include "ropewalk/process.hpp"

namespace {

int run_cases(int cases, std::uint64_t seed) {
  ropewalk::Collectives communicator(ropewalk::Communicator::world());
  if (!communicator.direct()) {
    std::fprintf(stderr, "no direct collectives: %s\n", communicator.reason().c_str());
    return 1;
  }
  std::mt19937_64 random(seed);
  int failed = 0;
  for (int index = 0; index < cases; ++index) {
    const auto drawn = ropewalk::test::draw(random);
    const std::string difference = ropewalk::test::run(communicator, drawn);
    if (difference.empty()) continue;
    failed = 1;
    std::fprintf(stderr, "rank %d, case %d: %s: %s\n", communicator.rank(), index,
                 ropewalk::test::text(drawn, communicator).c_str(), difference.c_str());
  }
  return failed;
}

}  // namespace

int main(int argc, char** argv) {
  const int cases = argc > 1 ? std::atoi(argv[1]) : 100;
  const std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  try {
    const ropewalk::Process process;
    return run_cases(cases, seed);
  } catch (const ropewalk::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
