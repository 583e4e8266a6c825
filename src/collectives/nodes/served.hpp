// Which movements the nodes serve, by sizes that all ranks know alike; MPI's own call is faster
// elsewhere.
//
// Measured in a box of 4 nodes of 2 ranks on TCP (docs/explanation/nodes.md), where a message costs
// some 50 us and ranks share cores.
#pragma once

#include <cstddef>

#include "collectives/nodes/nodes.hpp"
#include "mpi/fallback.hpp"

namespace ropewalk::collectives::nodes {

namespace served {
constexpr std::size_t broadcast_from = std::size_t{8} << 10;
constexpr std::size_t allgather_from = std::size_t{128} << 10;       // all blocks
constexpr std::size_t reduce_scatter_from = std::size_t{128} << 10;  // all blocks
constexpr std::size_t alltoall_to = std::size_t{8} << 10;    // a block; where nobody shares cores
constexpr std::size_t gather_from = std::size_t{4} << 10;    // a block
constexpr std::size_t scatter_from = std::size_t{64} << 10;  // a block
}  // namespace served

// Where every node has one rank there is nothing to share out.
inline bool is_served(const Nodes& nodes, bool size_is) {
  return nodes.layout().most > 1 && (size_is || nodes.settings().all_sizes);
}

// gatherv, scatterv and alltoallv, whose sizes no rank knows of all: MPI's own call begins with an
// agreement of all ranks where MPI has int counts, which costs more than it can be faster.
inline bool takes_unknown_sizes(bool or_faster) {
  return or_faster || mpi::fallback::counts_need_agreement();
}

}  // namespace ropewalk::collectives::nodes
