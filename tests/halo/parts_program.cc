// Faces in parts between processes: random grids, parts and orders.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <random>

#include "halo/parted_faces.hpp"
#include "ropewalk/halo.hpp"
#include "ropewalk/process.hpp"

namespace {

void run(ropewalk::Communicator world) {
  ropewalk::EndpointSet endpoints(world, {.lanes = 1, .threads = false, .pin = false});
  const int cases = world.size() > 4 ? 3 : 6;
  for (int i = 0; i < cases; ++i) {
    std::mt19937_64 random(static_cast<std::uint64_t>(1000 * world.size() + i));
    const auto one = ropewalk::test::random_faces(random, world.size(), i % 2 == 0 ? 60 : 5000);
    const int parts = 1 + static_cast<int>(random() % 9);
    const std::size_t threads = world.size() > 4 ? 1 : 1 + random() % 3;
    const ropewalk::CartesianGrid grid(world, one.extents, one.periodic);
    ropewalk::Halo halo(grid, endpoints, one.sizes,
                        {ropewalk::Strategy::automatic, ropewalk::Corners::no, parts});
    std::mt19937_64 own(static_cast<std::uint64_t>(100 * i + world.rank()));
    for (std::uint64_t round = 1; round <= 5; ++round) {
      ropewalk::test::exchange_by_threads(halo, grid, one.sizes, round, threads, own);
    }
  }
}

}  // namespace

int main() {
  try {
    const ropewalk::Process process;
    run(process.world());
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "halo_parts: %s\n", error.what());
    std::_Exit(EXIT_FAILURE);  // no MPI_Finalize: others may wait for this rank
  }
}
