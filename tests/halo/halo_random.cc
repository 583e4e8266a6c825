// Random halo exchanges on a real MPI, against index arithmetic on the global array.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <random>
#include <string>

#include "halo/random_case.hpp"
#include "halo/random_faces.hpp"
#include "ropewalk/process.hpp"

namespace {

using ropewalk::test::CaseLimits;
using ropewalk::test::HaloCase;

// The first cases are small ones of up to six dimensions, then come larger ones, whose messages go
// by rendezvous.
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

// The faces lie in memory of the halo. They go by messages and, where all ranks share a node,
// without any.
void run_random_faces(ropewalk::Communicator world, int cases) {
  using ropewalk::Strategy;
  for (int i = 0; i < cases; ++i) {
    std::mt19937_64 random(static_cast<std::uint64_t>(1000 * world.size() + i));
    const auto one = ropewalk::test::random_faces(random, world.size(), i % 2 == 0 ? 300 : 20000);
    const ropewalk::CartesianGrid grid(world, one.extents, one.periodic);
    ropewalk::EndpointSet endpoints(world, {.lanes = 1, .threads = false, .pin = false});
    for (const Strategy strategy : {Strategy::put, Strategy::concurrent, Strategy::automatic}) {
      ropewalk::Halo halo(grid, endpoints, one.sizes, {strategy, ropewalk::Corners::no});
      std::mt19937_64 own(static_cast<std::uint64_t>(100 * i + world.rank()));
      for (std::uint64_t round = 1; round <= 6; ++round) {
        ropewalk::test::exchange_faces_at_random(halo, grid, one.sizes, round, own);
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int small = argc > 1 ? std::atoi(argv[1]) : 8;
  try {
    const ropewalk::Process process;
    run_random_cases(process.world(), small, 3);
    run_random_faces(process.world(), process.world().size() > 4 ? 1 : 3);
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "halo_random: %s\n", error.what());
    std::_Exit(EXIT_FAILURE);  // no MPI_Finalize: others may wait for this rank
  }
}
