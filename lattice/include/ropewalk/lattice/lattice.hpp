// A four-dimensional lattice that is spread over a grid of ranks: its extents, which rank owns
// which site, sums over all ranks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "ropewalk/collectives.hpp"
#include "ropewalk/endpoint.hpp"
#include "ropewalk/halo.hpp"

namespace ropewalk::lattice {

class Lattice;
namespace detail {
class Shared;
Shared& shared(const Lattice&);
}  // namespace detail

// Dimensions are in the order x, y, z, t everywhere.
inline constexpr int dimensions = 4;
using Extents = std::array<int, dimensions>;

std::string text(const Extents&);  // "8.8.8.16"

// Divides the ranks over the dimensions so that faces are small: the longest local extent first.
// Throws Error(argument) where no grid of so many ranks divides the extents; it names grids that
// do.
Extents choose_rank_grid(const Extents& global, int ranks);

struct LatticeOptions {
  // Lanes for the halo exchange. One lane without a comm thread asks least of the MPI; several
  // lanes, or threads, need MPI_THREAD_MULTIPLE.
  EndpointOptions endpoints{.lanes = 1, .threads = false};
  // Uses the halo exchange in these dimensions even where one rank has the whole extent and is its
  // own neighbour. For tests and measurements; needs a communicator.
  std::array<bool, dimensions> exchange_with_self{};
};

// Every rank owns a box of the same extents. Periodic in every dimension; an antiperiodic boundary
// is a matter of the operators (OperatorOptions). Copies refer to the same lattice.
class Lattice {
 public:
  // This process alone; no MPI is needed.
  explicit Lattice(const Extents& global);
  // Collective. Throws Error(argument) on every rank where extents and rank grid do not fit, or are
  // not the same on all: it names both, and rank grids that do.
  Lattice(const Extents& global, Communicator, const Extents& rank_grid,
          const LatticeOptions& = {});

  const Extents& global() const noexcept;
  const Extents& local() const noexcept;
  const Extents& rank_grid() const noexcept;
  const Extents& coordinates() const noexcept;  // of this rank in the grid of ranks
  const Extents& origin() const noexcept;       // global coordinates of the first local site
  std::size_t local_sites() const noexcept;
  std::size_t global_sites() const noexcept;
  int rank() const noexcept;
  int size() const noexcept;
  // Returns true where the faces in this dimension are exchanged: the neighbours belong to other
  // ranks, or exchange_with_self is set.
  bool divided(int dimension) const noexcept;

  // A lattice that was made with a communicator has a grid; for another this throws
  // Error(argument).
  const CartesianGrid& grid() const;
  EndpointSet& endpoints() const;  // made at first use: collective
  Collectives& collectives() const;

  // Collective. Sums over the ranks, in place; all ranks get the same bits.
  void sum(double* values, std::size_t count) const;

 private:
  friend detail::Shared& detail::shared(const Lattice&);
  struct State;
  std::shared_ptr<State> state_;
};

// Local index of a site, x fastest: x + Lx (y + Ly (z + Lz t)). The order of all plain arrays.
inline std::size_t site_index(const Extents& local, const Extents& site) {
  const auto extent = [&](int d) { return static_cast<std::size_t>(local[d]); };
  const auto at = [&](int d) { return static_cast<std::size_t>(site[d]); };
  return at(0) + extent(0) * (at(1) + extent(1) * (at(2) + extent(2) * at(3)));
}

}  // namespace ropewalk::lattice
