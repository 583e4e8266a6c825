// A halo exchange as short as it gets: a plate is cut into one block of rows a rank, and a step of
// Jacobi's method computes the inner rows while the outermost travel. README.md shows the main
// part.
//
//   ropewalk run -n 4 -- build/release/examples/halo
#include <ropewalk/halo.hpp>
#include <ropewalk/memory.hpp>
#include <ropewalk/process.hpp>

#include <algorithm>
#include <cstdio>
#include <vector>

constexpr std::size_t rows = 512;  // of a rank's block, without the ghost row on either side
constexpr std::size_t columns = 512;

// Each inner cell of rows [begin, end) becomes the mean of its four neighbours.
void relax(const double* from, double* to, std::size_t begin, std::size_t end) {
  for (std::size_t i = begin * columns; i < end * columns; i += columns) {
    for (std::size_t j = i + 1; j < i + columns - 1; ++j) {
      to[j] = (from[j - columns] + from[j + columns] + from[j - 1] + from[j + 1]) / 4;
    }
  }
}

int main() {
  const ropewalk::Process process;  // starts MPI
  const ropewalk::Communicator world = process.world();
  const ropewalk::CartesianGrid line(world, {world.size()}, {false});
  ropewalk::EndpointSet endpoints(world);
  ropewalk::Buffer<double> u((rows + 2) * columns), next((rows + 2) * columns);  // 2 MiB pages
  std::fill(u.begin(), u.end(), world.rank());
  const ropewalk::Field field{u.data(), columns * sizeof(double), {rows}, {1}};
  ropewalk::Halo halo(line, endpoints, std::vector{field});
  halo.start();                           // the outermost rows leave
  relax(u.data(), next.data(), 2, rows);  // rows that need no neighbour
  halo.wait();                            // the neighbours' rows are in the ghost rows
  relax(u.data(), next.data(), 1, 2), relax(u.data(), next.data(), rows, rows + 1);

  // The row above is of the rank before: a quarter of the mean is less by 1.
  const double expected = world.rank() - (world.rank() > 0 ? 0.25 : 0);
  const double found = next[columns + 1];
  if (found != expected) std::printf("rank %d: %g, expected %g\n", world.rank(), found, expected);
  return found == expected ? 0 : 1;
}
