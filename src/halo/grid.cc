// CartesianGrid tells where a rank stands and who its neighbours are.
#include <algorithm>
#include <limits>

#include "halo/rank_order.hpp"
#include "mpi/collectively.hpp"
#include "node/rank_nodes.hpp"
#include "ropewalk/halo.hpp"

namespace ropewalk {

namespace {

std::string text(const std::vector<int>& extents) {
  std::string out;
  for (int extent : extents) out += (out.empty() ? "" : ".") + std::to_string(extent);
  return out;
}

void check_dimensions(const std::vector<int>& extents, const std::vector<bool>& periodic) {
  constexpr std::size_t most = CartesianGrid::max_dimensions;
  if (extents.empty() || extents.size() > most) {
    throw Error(ErrorCode::argument, "extents: " + std::to_string(extents.size()) +
                                         " dimensions, expected 1 to 6; pass one extent for each "
                                         "dimension of the grid");
  }
  if (periodic.size() != extents.size()) {
    throw Error(ErrorCode::argument, "periodic: " + std::to_string(periodic.size()) +
                                         " entries, expected one for each of the " +
                                         std::to_string(extents.size()) +
                                         " dimensions; pass as many as extents");
  }
}

void check_extents(const std::vector<int>& extents, int ranks) {
  std::int64_t product = 1;
  for (std::size_t d = 0; d < extents.size(); ++d) {
    if (extents[d] < 1) {
      throw Error(ErrorCode::argument, "extents[" + std::to_string(d) +
                                           "]: " + std::to_string(extents[d]) +
                                           ", expected at least 1; use 1 for a dimension that is "
                                           "not divided");
    }
    // Beyond the ranks of any communicator it is wrong already; going on could overflow.
    if (product <= std::numeric_limits<int>::max()) product *= extents[d];
  }
  if (product != ranks) {
    throw Error(ErrorCode::argument,
                "extents: " + text(extents) + " makes " +
                    (product <= std::numeric_limits<int>::max() ? std::to_string(product)
                                                                : "more than 2^31-1") +
                    " ranks, expected the " + std::to_string(ranks) +
                    " of the communicator; change the extents or the number of ranks");
  }
}

std::vector<mpi::Fact> facts(const std::vector<int>& extents, const std::vector<bool>& periodic,
                             RankOrder order) {
  std::vector<mpi::Fact> out{
      {"extents: number of dimensions", static_cast<std::int64_t>(extents.size())},
      {"order", static_cast<std::int64_t>(order)}};
  for (std::size_t d = 0; d < CartesianGrid::max_dimensions; ++d) {
    const std::string index = "[" + std::to_string(d) + "]";
    out.push_back({"extents" + index, d < extents.size() ? extents[d] : 0});
    out.push_back({"periodic" + index, d < periodic.size() && periodic[d] ? 1 : 0});
  }
  return out;
}

}  // namespace

CartesianGrid::CartesianGrid(Communicator communicator, std::vector<int> extents,
                             std::vector<bool> periodic, RankOrder order)
    : communicator_(communicator),
      extents_(std::move(extents)),
      periodic_(std::move(periodic)),
      rank_(communicator.rank()),
      size_(communicator.size()) {
  const mpi::Comm comm{communicator.handle()};
  mpi::collectively(comm, [&] {
    mpi::collectively(comm, [&] {
      check_dimensions(extents_, periodic_);
      check_extents(extents_, size_);
    });
    mpi::same_on_all(comm, facts(extents_, periodic_, order));
    int cell = rank_;
    if (order == RankOrder::by_node) {
      std::vector<int> nodes = node::nodes_of_ranks(comm);
      std::vector<int> domains = node::domains_of_ranks(comm, nodes);
      ranks_ = halo::ranks_by_node(extents_, periodic_, {std::move(nodes), std::move(domains)});
      cell = static_cast<int>(std::ranges::find(ranks_, rank_) - ranks_.begin());
    }
    coordinates_ = halo::coordinates_of(cell, extents_);
  });
}

int CartesianGrid::neighbour(const std::vector<int>& offset) const {
  if (offset.size() != extents_.size()) {
    throw Error(ErrorCode::argument, "offset: " + std::to_string(offset.size()) +
                                         " entries, expected one for each of the " +
                                         std::to_string(extents_.size()) +
                                         " dimensions; pass as many as the grid has");
  }
  int cell = 0;
  for (std::size_t d = 0; d < extents_.size(); ++d) {
    const std::int64_t extent = extents_[d];
    std::int64_t position = std::int64_t{coordinates_[d]} + offset[d];
    if (position < 0 || position >= extent) {
      if (!periodic_[d]) return -1;
      position = ((position % extent) + extent) % extent;
    }
    cell = cell * extents_[d] + static_cast<int>(position);
  }
  return ranks_.empty() ? cell : ranks_[static_cast<std::size_t>(cell)];
}

int CartesianGrid::neighbour(int dimension, int direction) const {
  if (dimension < 0 || dimension >= dimensions()) {
    throw Error(ErrorCode::argument, "dimension: " + std::to_string(dimension) +
                                         ", expected 0 to " + std::to_string(dimensions() - 1) +
                                         "; pass a dimension of the grid");
  }
  if (direction != 1 && direction != -1) {
    throw Error(ErrorCode::argument, "direction: " + std::to_string(direction) +
                                         ", expected +1 or -1; pass the offset instead for ranks "
                                         "further away");
  }
  std::vector<int> offset(extents_.size(), 0);
  offset[static_cast<std::size_t>(dimension)] = direction;
  return neighbour(offset);
}

}  // namespace ropewalk
