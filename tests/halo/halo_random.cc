// Random halo exchanges on a real MPI, against index arithmetic on the global array.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "halo/random_case.hpp"
#include "ropewalk/process.hpp"

namespace {

using ropewalk::test::CaseLimits;
using ropewalk::test::HaloCase;

// Small ones of up to six dimensions, then larger ones, whose messages go by rendezvous.
void run_random_cases(ropewalk::Communicator world, int small, int large) {
  for (int i = 0; i < small + large; ++i) {
    CaseLimits limits;
    if (i >= small) limits = {2, 4, 60, true};
    // A word of its own for each number of ranks.
    const auto seed = static_cast<std::uint64_t>(1000 * world.size() + i);
    const HaloCase halo = ropewalk::test::random_case(seed, world.size(), limits);
    ropewalk::test::run_case(halo, world);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int small = argc > 1 ? std::atoi(argv[1]) : 8;
  try {
    const ropewalk::Process process;
    run_random_cases(process.world(), small, 3);
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "halo_random: %s\n", error.what());
    std::_Exit(EXIT_FAILURE);  // no MPI_Finalize: others may wait for this rank
  }
}
