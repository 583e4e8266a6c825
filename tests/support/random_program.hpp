// The main function of a program ROUNDS SEED, which makes random calls on the ranks of a real MPI.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "ropewalk/communicator.hpp"
#include "ropewalk/error.hpp"
#include "ropewalk/process.hpp"

namespace ropewalk::test {

// calls(communicator, seed, rounds) returns what was wrong on this rank first, or "". It is called
// with `seeds` seeds, from SEED on. Returns the status of the program.
template <class Calls>
int random_program(int argc, char** argv, int seeds, Calls&& calls) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 10;
  const std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  try {
    const Process process;
    for (int turn = 0; turn < seeds; ++turn) {
      const std::string problem =
          calls(Communicator::world(), seed + static_cast<std::uint64_t>(turn), rounds);
      if (problem.empty()) continue;
      std::fprintf(stderr, "%s\n", problem.c_str());
      return 1;
    }
    return 0;
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
  }
  return 1;
}

}  // namespace ropewalk::test
