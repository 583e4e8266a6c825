// Which rank stands where on a grid whose nodes have compact blocks of it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ropewalk::halo {

// Returns the coordinates of a cell, counted row-major.
std::vector<int> coordinates_of(int cell, const std::vector<int>& extents);
int cell_of(const std::vector<int>& coordinates, const std::vector<int>& extents);

// Returns how many links between neighbours towards + join ranks of different nodes. `ranks` has
// the rank of each cell, row-major, and `nodes` the node of each rank.
std::int64_t crossing_links(const std::vector<int>& extents, const std::vector<bool>& periodic,
                            std::span<const int> ranks, std::span<const int> nodes);

// Returns the rank of each cell, row-major: of row-major order, the same node by node, and blocks
// of equal extents (where nodes have equally many ranks), the first with the fewest such links.
std::vector<int> ranks_by_node(const std::vector<int>& extents, const std::vector<bool>& periodic,
                               std::span<const int> nodes);

}  // namespace ropewalk::halo
