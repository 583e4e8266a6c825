// This example makes a step of a stencil code that computes while its faces travel: threads share
// the interior by work stealing, and one of them exchanges first and then joins in.
//
// ropewalk run -n 2 -- build/release/examples/overlap
#include <ropewalk/halo.hpp>
#include <ropewalk/memory.hpp>
#include <ropewalk/process.hpp>
#include <ropewalk/schedule.hpp>

#include <cmath>
#include <cstdio>
#include <exception>
#include <utility>

namespace {

constexpr std::size_t rows = 256;  // of this rank, and a ghost row on either side
constexpr std::size_t columns = 512;
constexpr int steps = 50;

struct Plate {
  Plate() : now((rows + 2) * columns), next((rows + 2) * columns) {}
  ropewalk::Buffer<double> now;
  ropewalk::Buffer<double> next;

  ropewalk::FacePackets faces(ropewalk::Buffer<double>& field) {
    double* const first = field.data();
    const std::size_t bytes = columns * sizeof(double);
    // Towards + the last row is sent, and what comes from there goes below it.
    return {{first + rows * columns, first + columns},
            {first + (rows + 1) * columns, first},
            {bytes, bytes}};
  }
  // Rows [begin, end), counted without the ghosts: the mean of the neighbours, closed in a row.
  void relax(std::size_t begin, std::size_t end) {
    for (std::size_t row = begin + 1; row < end + 1; ++row) {
      const double* at = now.data() + row * columns;
      for (std::size_t c = 0; c < columns; ++c) {
        const double sides = at[c == 0 ? columns - 1 : c - 1] + at[c == columns - 1 ? 0 : c + 1];
        next[row * columns + c] = 0.25 * (sides + *(at + c - columns) + at[c + columns]);
      }
    }
  }
};

double mean(const Plate& plate) {
  double sum = 0;
  for (std::size_t i = columns; i < (rows + 1) * columns; ++i) sum += plate.now[i];
  return sum / (rows * columns);
}

int run(ropewalk::Communicator world) {
  const ropewalk::CartesianGrid grid(world, {world.size()}, {true});
  // The lanes have no comm threads: the team's threads drive them.
  ropewalk::EndpointSet endpoints(world, {.lanes = 1, .threads = false});
  ropewalk::ThreadTeam team(world, {.threads = 2});
  // Rows 1 to rows - 2 need no ghost. The first of the two workers communicates.
  ropewalk::WorkStealing interior(rows - 2, team.size(), 1);

  Plate plate;
  for (std::size_t i = 0; i < plate.now.size(); ++i) {
    plate.now[i] = std::sin(static_cast<double>(i)) + world.rank();
  }
  const double before = mean(plate);
  ropewalk::Halo halo(grid, endpoints, plate.faces(plate.now));
  ropewalk::Halo other(grid, endpoints, plate.faces(plate.next));
  for (int step = 0; step < steps; ++step) {
    ropewalk::parallel_overlap(
        team, interior, halo,
        [&](std::size_t begin, std::size_t end) { plate.relax(begin + 1, end + 1); },
        [&](int worker) {
          if (worker == 0) plate.relax(0, 1);
          if (worker == team.size() - 1) plate.relax(rows - 1, rows);
        });
    std::swap(plate.now, plate.next);
    std::swap(halo, other);
  }

  // Heat moves between ranks in a ring, and with one rank stays what it was.
  const double after = mean(plate);
  const bool right = world.size() > 1 ? after != before : std::abs(after - before) < 1e-9;
  const ropewalk::WorkStealing::Counts counts = interior.counts(0);
  std::printf("rank %d: mean %.6f, was %.6f; the comm thread computed %llu blocks: %s\n",
              world.rank(), after, before,
              static_cast<unsigned long long>(counts.own + counts.stolen),
              right ? "right" : "WRONG");
  return right ? 0 : 1;
}

}  // namespace

int main() {
  try {
    const ropewalk::Process process;
    return run(process.world());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "overlap: %s\n", error.what());
    return 1;
  }
}
