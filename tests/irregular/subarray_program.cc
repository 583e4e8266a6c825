// subarray_program ROUNDS SEED: random exchanges of parts of arrays on the ranks of a real MPI.
#include <cstdio>
#include <cstdlib>

#include "irregular/random_subarrays.hpp"
#include "ropewalk/error.hpp"
#include "ropewalk/process.hpp"

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 10;
  const std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  try {
    const ropewalk::Process process;
    const auto problem =
        ropewalk::test::random_subarrays(ropewalk::Communicator::world(), seed, rounds);
    if (problem.empty()) return 0;
    std::fprintf(stderr, "%s\n", problem.c_str());
  } catch (const ropewalk::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
  }
  return 1;
}
