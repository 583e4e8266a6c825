// The heat equation of heat3d.cpp, closed in all directions, by the threads of OpenMP: one parallel
// region makes all steps, and threads of it call MPI, each on a lane of its own, while the others
// compute. Compared bit for bit to the same steps by one thread of one rank.
//
//   ropewalk run -n 2 -- build/release/examples/heat3d_omp --grid 48 --steps 20 --threads 4
//
// The cube is cut into slabs of planes, one for each rank, so a rank has two faces: with three
// threads or more, two of them exchange one face each, and then join the others.
#include <omp.h>
#include <ropewalk/halo.hpp>
#include <ropewalk/memory.hpp>
#include <ropewalk/process.hpp>
#include <ropewalk/schedule.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>
#include <utility>

namespace {

constexpr int lanes = 2;  // one for each face

struct Options {
  std::size_t cells = 48;  // of the whole cube, each way
  int steps = 20;
  int threads = 0;  // 0: as many as OpenMP gives, OMP_NUM_THREADS
};

constexpr const char* usage = "usage: heat3d_omp [--grid CELLS] [--steps N] [--threads N]";

Options parse(int argc, char** argv) {
  Options out;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (i + 1 == argc) throw std::invalid_argument(option + ": " + usage);
    const int value = std::atoi(argv[++i]);
    if (value < 1) throw std::invalid_argument(option + ": expected a number from 1 on");
    if (option == "--grid") {
      out.cells = static_cast<std::size_t>(value);
    } else if (option == "--steps") {
      out.steps = value;
    } else if (option == "--threads") {
      out.threads = value;
    } else {
      throw std::invalid_argument(option + ": " + usage);
    }
  }
  return out;
}

// Some planes of the cube, with a plane of ghosts on either side.
class Slab {
 public:
  Slab(std::size_t cells, std::size_t first, std::size_t planes)
      : cells_(cells), planes_(planes), values_((planes + 2) * cells * cells) {
    for (std::size_t i = 0; i < planes * cells * cells; ++i) {
      values_[cells * cells + i] = static_cast<double>((first * cells * cells + i) % 1009) / 7.0;
    }
  }
  std::size_t planes() const { return planes_; }
  double* plane(std::size_t p) { return values_.data() + p * cells_ * cells_; }  // 0: ghosts
  const double* plane(std::size_t p) const { return values_.data() + p * cells_ * cells_; }
  std::size_t plane_bytes() const { return cells_ * cells_ * sizeof(double); }

  // Towards + the last plane is sent, and what comes from there goes behind it.
  ropewalk::FacePackets faces() {
    return {
        {plane(planes_), plane(1)}, {plane(planes_ + 1), plane(0)}, {plane_bytes(), plane_bytes()}};
  }

  // Makes a step of `old` for the planes [begin, end), counted without the ghosts. The order of the
  // additions is fixed, so the bits do not depend on who computes a plane.
  void step(const Slab& old, std::size_t begin, std::size_t end) {
    constexpr double c = 0.125;
    const std::size_t n = cells_;
    for (std::size_t p = begin + 1; p < end + 1; ++p) {
      const double* const here = old.plane(p);
      for (std::size_t y = 0; y < n; ++y) {
        const std::size_t above = (y + n - 1) % n * n, row = y * n, below = (y + 1) % n * n;
        for (std::size_t z = 0; z < n; ++z) {
          const double sum = old.plane(p - 1)[row + z] + old.plane(p + 1)[row + z] +
                             here[above + z] + here[below + z] + here[row + (z + n - 1) % n] +
                             here[row + (z + 1) % n];
          plane(p)[row + z] = here[row + z] + c * (sum - 6.0 * here[row + z]);
        }
      }
    }
  }

 private:
  std::size_t cells_;
  std::size_t planes_;
  ropewalk::Buffer<double> values_;  // in the arena: on huge pages
};

Slab run_serially(const Options& options) {
  Slab now(options.cells, 0, options.cells), next(options.cells, 0, options.cells);
  for (int i = 0; i < options.steps; ++i) {
    std::memcpy(now.plane(0), now.plane(options.cells), now.plane_bytes());
    std::memcpy(now.plane(options.cells + 1), now.plane(1), now.plane_bytes());
    next.step(now, 0, options.cells);
    std::swap(now, next);
  }
  return now;
}

// OpenMP may give fewer threads than it is asked for; then the loop is made for those.
int threads_given(int wanted) {
  int given = 1;
#pragma omp parallel num_threads(wanted > 0 ? wanted : omp_get_max_threads())
#pragma omp single
  given = omp_get_num_threads();
  return given;
}

struct Running {
  Slab now;
  Slab next;
  ropewalk::Halo halo;   // of now
  ropewalk::Halo other;  // of next
};

// One parallel region for all steps. No exception may leave it: an error of MPI ends the program.
void run_steps(Running& r, int threads, int communicating, int steps) {
  const std::size_t planes = r.now.planes();
  // The first and the last plane need ghosts, all others do not.
  ropewalk::WorkStealing interior(planes - 2, threads, communicating);
#pragma omp parallel num_threads(threads)
  {
    const int worker = omp_get_thread_num();
    for (int step = 0; step < steps; ++step) {
      ropewalk::overlap_worker(worker, interior, r.halo, [&](std::size_t begin, std::size_t end) {
        r.next.step(r.now, begin + 1, end + 1);
      });
#pragma omp barrier
      if (worker == 0) r.next.step(r.now, 0, 1);
      if (worker == threads - 1) r.next.step(r.now, planes - 1, planes);
#pragma omp barrier
#pragma omp single
      {
        std::swap(r.now, r.next);
        std::swap(r.halo, r.other);
      }
    }
  }
}

int run(const Options& options, ropewalk::Communicator world) {
  const auto ranks = static_cast<std::size_t>(world.size());
  const auto rank = static_cast<std::size_t>(world.rank());
  if (options.cells < 2 * ranks) {
    throw std::invalid_argument("--grid: expected at least 2 cells a rank");
  }
  const std::size_t first = options.cells * rank / ranks;
  const std::size_t planes = options.cells * (rank + 1) / ranks - first;
  const ropewalk::CartesianGrid grid(world, {world.size()}, {true});
  ropewalk::EndpointSet endpoints(world, {.lanes = lanes, .threads = false});
  Slab now(options.cells, first, planes), next(options.cells, first, planes);
  // Messages, since only these have lanes.
  const ropewalk::HaloOptions how{ropewalk::Strategy::concurrent, ropewalk::Corners::no};
  ropewalk::Halo halo(grid, endpoints, now.faces(), how);
  ropewalk::Halo other(grid, endpoints, next.faces(), how);
  Running r{std::move(now), std::move(next), std::move(halo), std::move(other)};

  const int threads = threads_given(options.threads);
  const int communicating = std::min(lanes, threads - 1);
  run_steps(r, threads, communicating, options.steps);

  const Slab whole = run_serially(options);
  const bool same =
      std::memcmp(r.now.plane(1), whole.plane(first + 1), planes * whole.plane_bytes()) == 0;
  std::printf("rank %d: %zu planes by %d threads, %d of them with a lane: %s\n", world.rank(),
              planes, threads, communicating, same ? "the same bits" : "WRONG");
  return same ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Options options = parse(argc, argv);
    const ropewalk::Process process;
    return run(options, process.world());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "heat3d_omp: %s\n", error.what());
    return 1;
  }
}
