// The heat equation on a cube, u' = u + c (sum of the six neighbours - 6 u), divided over a grid of
// ranks, and compared bit for bit to the same steps on one rank.
//
//   ropewalk run -n 4 -- build/release/examples/heat3d --grid 48 --steps 20
//   ropewalk run -n 8 -- build/release/examples/heat3d --grid 64 --mpi-grid 2.2.2 --periodic
//
// The interior is computed while the ghosts are under way, the cells beside them afterwards. Beyond
// an open boundary the ghosts stay at 0: a cold wall.
#include <ropewalk/halo.hpp>
#include <ropewalk/memory.hpp>
#include <ropewalk/process.hpp>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

using Triple = std::array<int, 3>;

struct Options {
  int cells = 48;  // of the whole cube, each way
  int steps = 20;
  bool periodic = false;
  Triple ranks{0, 0, 0};  // 0: as cubic as the number of ranks allows
  ropewalk::Strategy strategy = ropewalk::Strategy::automatic;
};

constexpr const char* usage =
    "usage: heat3d [--grid CELLS] [--steps N] [--periodic] [--mpi-grid X.Y.Z] [--strategy NAME]";

Triple parse_ranks(const char* text) {
  Triple out{};
  if (std::sscanf(text, "%d.%d.%d", &out[0], &out[1], &out[2]) != 3) {
    throw std::invalid_argument(std::string("--mpi-grid: ") + text + ", expected as in 2.2.1");
  }
  return out;
}

Options parse(int argc, char** argv) {
  Options out;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--periodic") {
      out.periodic = true;
      continue;
    }
    if (i + 1 == argc) throw std::invalid_argument(option + ": " + usage);
    const char* value = argv[++i];
    if (option == "--grid") {
      out.cells = std::atoi(value);
    } else if (option == "--steps") {
      out.steps = std::atoi(value);
    } else if (option == "--mpi-grid") {
      out.ranks = parse_ranks(value);
    } else if (option == "--strategy") {
      out.strategy = ropewalk::strategy(value);
    } else {
      throw std::invalid_argument(option + ": " + usage);
    }
  }
  if (out.cells < 1) throw std::invalid_argument("--grid: expected at least 1 cell");
  return out;
}

// Each prime factor, largest first, goes to the dimension with the fewest ranks so far.
Triple divide(int ranks) {
  std::vector<int> factors;
  for (int f = 2; ranks > 1; ++f) {
    for (; ranks % f == 0; ranks /= f) factors.push_back(f);
  }
  Triple out{1, 1, 1};
  while (!factors.empty()) {
    int* least = &out[0];
    for (int& extent : out) {
      if (extent < *least) least = &extent;
    }
    *least *= factors.back();
    factors.pop_back();
  }
  return out;
}

// Returns the first cell and the length of part `index` of `parts` of a line. The parts are as even
// as can be.
std::pair<int, int> share(int cells, int parts, int index) {
  const int begin = static_cast<int>(static_cast<long long>(cells) * index / parts);
  const int end = static_cast<int>(static_cast<long long>(cells) * (index + 1) / parts);
  return {begin, end - begin};
}

// A block is a part of the cube with one layer of ghosts.
class Block {
 public:
  Block(const Triple& first, const Triple& cells)
      : first_(first), cells_(cells), values_(slab() * static_cast<std::size_t>(cells[0] + 2)) {}

  double& at(int x, int y, int z) { return values_[index(x, y, z)]; }
  double at(int x, int y, int z) const { return values_[index(x, y, z)]; }
  const Triple& first() const { return first_; }
  const Triple& cells() const { return cells_; }

  ropewalk::Field field() {
    const auto extent = [&](std::size_t d) { return static_cast<std::size_t>(cells_[d]); };
    return {values_.data(), sizeof(double), {extent(0), extent(1), extent(2)}, {1, 1, 1}};
  }

  void initialise() {  // any function of the global position will do
    for (int x = 1; x <= cells_[0]; ++x) {
      for (int y = 1; y <= cells_[1]; ++y) {
        for (int z = 1; z <= cells_[2]; ++z) {
          const long long n =
              (first_[0] + x) * 7919LL + (first_[1] + y) * 104729LL + (first_[2] + z) * 1299709LL;
          at(x, y, z) = static_cast<double>(n % 1000) / 7.0;
        }
      }
    }
  }

 private:
  std::size_t row() const { return static_cast<std::size_t>(cells_[2] + 2); }
  std::size_t slab() const { return row() * static_cast<std::size_t>(cells_[1] + 2); }
  std::size_t index(int x, int y, int z) const {
    return static_cast<std::size_t>(x) * slab() + static_cast<std::size_t>(y) * row() +
           static_cast<std::size_t>(z);
  }

  Triple first_;
  Triple cells_;
  std::vector<double, ropewalk::Allocator<double>> values_;  // in the arena: on huge pages
};

// Makes one step for the cells from `low` to `high`, both included. The order of the additions is
// fixed, so the bits do not depend on how the cube is divided.
void step(const Block& old, Block& next, const Triple& low, const Triple& high) {
  constexpr double c = 0.125;
  for (int x = low[0]; x <= high[0]; ++x) {
    for (int y = low[1]; y <= high[1]; ++y) {
      for (int z = low[2]; z <= high[2]; ++z) {
        const double sum = old.at(x - 1, y, z) + old.at(x + 1, y, z) + old.at(x, y - 1, z) +
                           old.at(x, y + 1, z) + old.at(x, y, z - 1) + old.at(x, y, z + 1);
        next.at(x, y, z) = old.at(x, y, z) + c * (sum - 6.0 * old.at(x, y, z));
      }
    }
  }
}

void step_inside(const Block& old, Block& next) {
  const Triple& n = old.cells();
  step(old, next, {2, 2, 2}, {n[0] - 1, n[1] - 1, n[2] - 1});
}

// Visits the shell, which is one cell thick, each cell once: both slabs in x, then what is left in
// y, then in z.
void step_boundary(const Block& old, Block& next) {
  Triple low{1, 1, 1};
  Triple high = old.cells();
  for (std::size_t d = 0; d < 3; ++d) {
    Triple plane_high = high;
    plane_high[d] = low[d];
    step(old, next, low, plane_high);
    if (high[d] > low[d]) {
      Triple plane_low = low;
      plane_low[d] = high[d];
      step(old, next, plane_low, high);
    }
    ++low[d];
    --high[d];
  }
}

// Copies the ghosts of the whole cube on one rank; the exchange is compared with the result.
void wrap(Block& whole) {
  const int n = whole.cells()[0];
  for (int a = 1; a <= n; ++a) {
    for (int b = 1; b <= n; ++b) {
      whole.at(0, a, b) = whole.at(n, a, b);
      whole.at(n + 1, a, b) = whole.at(1, a, b);
      whole.at(a, 0, b) = whole.at(a, n, b);
      whole.at(a, n + 1, b) = whole.at(a, 1, b);
      whole.at(a, b, 0) = whole.at(a, b, n);
      whole.at(a, b, n + 1) = whole.at(a, b, 1);
    }
  }
}

Block run_serially(const Options& options) {
  const int n = options.cells;
  Block now({0, 0, 0}, {n, n, n});
  Block next({0, 0, 0}, {n, n, n});
  now.initialise();
  for (int i = 0; i < options.steps; ++i) {
    if (options.periodic) wrap(now);
    step(now, next, {1, 1, 1}, now.cells());
    std::swap(now, next);
  }
  return now;
}

// Counts the cells of the block that differ in any bit from the same cells of the whole.
long long differences(const Block& block, const Block& whole) {
  long long out = 0;
  for (int x = 1; x <= block.cells()[0]; ++x) {
    for (int y = 1; y <= block.cells()[1]; ++y) {
      for (int z = 1; z <= block.cells()[2]; ++z) {
        const double own = block.at(x, y, z);
        const double serial =
            whole.at(x + block.first()[0], y + block.first()[1], z + block.first()[2]);
        if (std::memcmp(&own, &serial, sizeof own) != 0) ++out;
      }
    }
  }
  return out;
}

// The sum over all ranks, on rank 0.
long long sum_on_zero(ropewalk::EndpointSet& endpoints, long long own) {
  constexpr int tag = 0;
  if (endpoints.rank() != 0) {
    endpoints.send(0, &own, sizeof own, 0, tag);
    return own;
  }
  for (int rank = 1; rank < endpoints.size(); ++rank) {
    long long other = 0;
    endpoints.receive(0, &other, sizeof other, rank, tag);
    own += other;
  }
  return own;
}

struct Outcome {
  Block block;
  double seconds;
  ropewalk::Strategy strategy;
  std::size_t bytes;
};

Outcome run_divided(const Options& options, const ropewalk::CartesianGrid& grid,
                    ropewalk::EndpointSet& endpoints) {
  Triple first{};
  Triple cells{};
  for (std::size_t d = 0; d < 3; ++d) {
    const auto [begin, length] = share(options.cells, grid.extents()[d], grid.coordinates()[d]);
    first[d] = begin;
    cells[d] = length;
  }
  Block now(first, cells);
  Block next(first, cells);
  now.initialise();
  // A halo belongs to one array: one for each of the two that take turns.
  const ropewalk::HaloOptions how{options.strategy, ropewalk::Corners::no};
  ropewalk::Halo halo(grid, endpoints, std::vector{now.field()}, how);
  ropewalk::Halo other(grid, endpoints, std::vector{next.field()}, {halo.strategy(), how.corners});
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < options.steps; ++i) {
    halo.start();
    step_inside(now, next);
    halo.wait();
    step_boundary(now, next);
    std::swap(now, next);
    std::swap(halo, other);
  }
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  return {std::move(now), taken.count(), halo.strategy(), halo.send_bytes()};
}

int run(const Options& options, ropewalk::Communicator world) {
  const Triple ranks = options.ranks[0] == 0 ? divide(world.size()) : options.ranks;
  const ropewalk::CartesianGrid grid(world, {ranks[0], ranks[1], ranks[2]},
                                     std::vector<bool>(3, options.periodic));
  ropewalk::EndpointSet endpoints(world);
  const Outcome outcome = run_divided(options, grid, endpoints);
  const long long wrong = sum_on_zero(endpoints, differences(outcome.block, run_serially(options)));
  if (world.rank() == 0) {
    std::printf("heat3d: %d^3 cells, %s, %d steps on %d.%d.%d ranks\n", options.cells,
                options.periodic ? "periodic" : "cold walls", options.steps, ranks[0], ranks[1],
                ranks[2]);
    std::printf("  strategy %s, %zu bytes a rank and exchange, %.3f ms a step\n",
                ropewalk::name(outcome.strategy), outcome.bytes,
                1e3 * outcome.seconds / (options.steps > 0 ? options.steps : 1));
    std::printf("  %lld cells differ from the serial run: %s\n", wrong,
                wrong == 0 ? "the same bits" : "WRONG");
  }
  return wrong == 0 ? 0 : 1;
}

// Wrong arguments are found by all ranks together, so all come here and MPI can end in order.
int run_or_explain(const Options& options, ropewalk::Communicator world) {
  try {
    return run(options, world);
  } catch (const ropewalk::Error& error) {
    if (error.code() != ropewalk::ErrorCode::argument) throw;
    if (world.rank() == 0) std::fprintf(stderr, "heat3d: %s\n", error.what());
    return 1;
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Options options = parse(argc, argv);
    const ropewalk::Process process;
    return run_or_explain(options, process.world());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "heat3d: %s\n", error.what());
    return 1;
  }
}
