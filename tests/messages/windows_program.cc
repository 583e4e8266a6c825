// windows_program ROUNDS SEED: random one-sided operations on the ranks of a real MPI.
#include <cstdio>
#include <cstdlib>

#include "messages/random_windows.hpp"
#include "ropewalk/error.hpp"
#include "ropewalk/process.hpp"

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 10;
  const std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  try {
    const ropewalk::Process process;
    for (std::uint64_t turn = 0; turn < 3; ++turn) {
      const auto problem =
          ropewalk::test::random_windows(ropewalk::Communicator::world(), seed + turn, rounds);
      if (problem.empty()) continue;
      std::fprintf(stderr, "%s\n", problem.c_str());
      return 1;
    }
    return 0;
  } catch (const ropewalk::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
  }
  return 1;
}
