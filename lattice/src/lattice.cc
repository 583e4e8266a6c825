// A Lattice divides extents over a grid of ranks; this file has the errors where they do not fit.
#include "ropewalk/lattice/lattice.hpp"

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "agree.hpp"
#include "ropewalk/error.hpp"
#include "shared.hpp"

namespace ropewalk::lattice {

namespace {

bool divides(const Extents& global, const Extents& grid) {
  for (int d = 0; d < dimensions; ++d) {
    if (grid[d] < 1 || global[d] % grid[d] != 0) return false;
  }
  return true;
}

Extents quotient(const Extents& global, const Extents& grid) {
  Extents out{};
  for (int d = 0; d < dimensions; ++d) out[d] = global[d] / grid[d];
  return out;
}

std::size_t product(const Extents& extents) {
  std::size_t out = 1;
  for (const int extent : extents) out *= static_cast<std::size_t>(extent);
  return out;
}

// Counts the sites on the faces of the divided dimensions, which a rank sends.
std::size_t surface(const Extents& local, const Extents& grid) {
  std::size_t out = 0;
  for (int d = 0; d < dimensions; ++d) {
    if (grid[d] > 1) out += product(local) / static_cast<std::size_t>(local[d]);
  }
  return out;
}

// Returns the grids of that many ranks that divide the lattice, the one with the least surface
// first.
std::vector<Extents> fitting_grids(const Extents& global, int ranks) {
  std::vector<Extents> out;
  for (int x = 1; x <= ranks; ++x) {
    for (int y = 1; ranks % x == 0 && y <= ranks / x; ++y) {
      for (int z = 1; ranks / x % y == 0 && z <= ranks / x / y; ++z) {
        if (ranks / x / y % z != 0) continue;
        const Extents grid{x, y, z, ranks / x / y / z};
        if (divides(global, grid)) out.push_back(grid);
      }
    }
  }
  // Later dimensions are divided first: their faces are contiguous in most codes.
  std::stable_sort(out.begin(), out.end(), [&](const Extents& a, const Extents& b) {
    return surface(quotient(global, a), a) < surface(quotient(global, b), b);
  });
  return out;
}

std::string remedy(const Extents& global, int ranks) {
  const std::vector<Extents> fitting = fitting_grids(global, ranks);
  if (fitting.empty()) {
    return "no grid of " + std::to_string(ranks) +
           " ranks divides this lattice; change the lattice or the number of ranks";
  }
  std::string out = "rank grids that fit: ";
  for (std::size_t i = 0; i < std::min<std::size_t>(fitting.size(), 3); ++i) {
    out += (i > 0 ? ", " : "") + text(fitting[i]);
  }
  return out;
}

void check_global(const Extents& global) {
  for (const int extent : global) {
    if (extent < 1 || extent > (1 << 20)) {
      throw Error(ErrorCode::argument, "global: found " + text(global) +
                                           ", expected four extents of 1 to 1048576 in the order "
                                           "x, y, z, t; correct the lattice");
    }
  }
}

void check_grid(const Extents& global, const Extents& grid, int ranks) {
  const bool positive = std::all_of(grid.begin(), grid.end(), [](int n) { return n >= 1; });
  if (!positive || product(grid) != static_cast<std::size_t>(ranks)) {
    throw Error(ErrorCode::argument, "rank_grid: found " + text(grid) + ", expected a product of " +
                                         std::to_string(ranks) + ", the number of ranks; " +
                                         remedy(global, ranks));
  }
  for (int d = 0; d < dimensions; ++d) {
    if (global[d] % grid[d] != 0) {
      throw Error(ErrorCode::argument,
                  "rank_grid: " + text(grid) + " does not divide the lattice " + text(global) +
                      " in dimension " + "xyzt"[d] + " (" + std::to_string(global[d]) + " over " +
                      std::to_string(grid[d]) + "); " + remedy(global, ranks));
    }
  }
}

std::vector<int> as_vector(const Extents& extents) { return {extents.begin(), extents.end()}; }

Extents as_extents(const std::array<bool, dimensions>& flags) {
  Extents out{};
  std::copy(flags.begin(), flags.end(), out.begin());
  return out;
}

}  // namespace

std::string text(const Extents& extents) {
  std::string out;
  for (const int extent : extents) out += (out.empty() ? "" : ".") + std::to_string(extent);
  return out;
}

Extents choose_rank_grid(const Extents& global, int ranks) {
  check_global(global);
  const std::vector<Extents> fitting = fitting_grids(global, ranks);
  if (fitting.empty()) {
    throw Error(ErrorCode::argument,
                "ranks: found " + std::to_string(ranks) + " for the lattice " + text(global) +
                    ", expected a number that is a product of divisors of its extents; " +
                    remedy(global, ranks));
  }
  return fitting.front();
}

struct Lattice::State {
  Extents global{};
  Extents local{};
  Extents rank_grid{1, 1, 1, 1};
  Extents coordinates{};
  Extents origin{};
  std::array<bool, dimensions> divided{};
  EndpointOptions endpoint_options;
  detail::Shared shared;
  std::optional<CartesianGrid> grid;
  std::optional<EndpointSet> endpoints;
  // Ends first: where an exception takes this rank away, all others must have been told before it
  // waits for them at the end of the endpoints.
  std::optional<Collectives> node;

  // Collective: it is called inside of collectively().
  void divide(const Extents& wanted, Communicator communicator, const Extents& over,
              const LatticeOptions& options);
  void check_together(const Extents& wanted, const Extents& over, const LatticeOptions& options);
};

Lattice::Lattice(const Extents& global) : state_(std::make_shared<State>()) {
  check_global(global);
  state_->global = state_->local = global;
}

Lattice::Lattice(const Extents& global, Communicator communicator, const Extents& rank_grid,
                 const LatticeOptions& options) {
  Collectives node(communicator);
  ropewalk::collectively(node, [&] { state_ = std::make_shared<State>(); });
  State& s = *state_;
  s.node.emplace(std::move(node));
  ropewalk::collectively(*s.node, [&] { s.divide(global, communicator, rank_grid, options); });
}

void Lattice::State::divide(const Extents& wanted, Communicator communicator, const Extents& over,
                            const LatticeOptions& options) {
  check_together(wanted, over, options);
  global = wanted;
  rank_grid = over;
  local = quotient(wanted, over);
  std::vector<int> extents = as_vector(over);
  std::vector<bool> periodic(dimensions, true);
  ropewalk::meet(*node);
  grid.emplace(communicator, std::move(extents), std::move(periodic));
  for (int d = 0; d < dimensions; ++d) {
    coordinates[d] = grid->coordinates()[static_cast<std::size_t>(d)];
    origin[d] = coordinates[d] * local[d];
    divided[d] = over[d] > 1 || options.exchange_with_self[d];
  }
  endpoint_options = options.endpoints;
}

void Lattice::State::check_together(const Extents& wanted, const Extents& over,
                                    const LatticeOptions& options) {
  ropewalk::collectively(*node, [&] {
    check_global(wanted);
    check_grid(wanted, over, node->size());
  });
  agree(*node, {{"global", text(wanted)},
                {"rank_grid", text(over)},
                {"exchange_with_self", text(as_extents(options.exchange_with_self))}});
}

const Extents& Lattice::global() const noexcept { return state_->global; }
const Extents& Lattice::local() const noexcept { return state_->local; }
const Extents& Lattice::rank_grid() const noexcept { return state_->rank_grid; }
const Extents& Lattice::coordinates() const noexcept { return state_->coordinates; }
const Extents& Lattice::origin() const noexcept { return state_->origin; }
std::size_t Lattice::local_sites() const noexcept { return product(state_->local); }
std::size_t Lattice::global_sites() const noexcept { return product(state_->global); }
int Lattice::rank() const noexcept { return state_->grid ? state_->grid->rank() : 0; }
int Lattice::size() const noexcept { return state_->grid ? state_->grid->size() : 1; }
bool Lattice::divided(int dimension) const noexcept { return state_->divided[dimension]; }

const CartesianGrid& Lattice::grid() const {
  if (!state_->grid) {
    throw Error(ErrorCode::argument,
                "lattice: this process alone, expected one made with a communicator; pass a "
                "Communicator and a rank grid to its constructor");
  }
  return *state_->grid;
}

EndpointSet& Lattice::endpoints() const {
  if (!state_->endpoints) {
    const Communicator communicator = grid().communicator();
    ropewalk::meet(*state_->node);
    state_->endpoints.emplace(communicator, state_->endpoint_options);
  }
  return *state_->endpoints;
}

Collectives& Lattice::collectives() const {
  (void)grid();  // for its error
  return *state_->node;
}

detail::Shared& detail::shared(const Lattice& lattice) { return lattice.state_->shared; }

void Lattice::sum(double* values, std::size_t count) const {
  if (size() == 1) return;
  ropewalk::meet(collectives());
  collectives().allreduce(in_place, values, count, element_type<double>(), ReductionOp::sum);
}

}  // namespace ropewalk::lattice
