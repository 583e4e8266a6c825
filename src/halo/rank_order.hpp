// Which rank stands where on a grid whose nodes, and in them cache domains, have compact blocks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ropewalk::halo {

// Returns the coordinates of a cell, counted row-major.
std::vector<int> coordinates_of(int cell, const std::vector<int>& extents);
int cell_of(const std::vector<int>& coordinates, const std::vector<int>& extents);

// Returns how many links between neighbours towards + join ranks of different groups: nodes, or
// cache domains. `ranks` has the rank of each cell, row-major, and `groups` the group of each rank.
std::int64_t crossing_links(const std::vector<int>& extents, const std::vector<bool>& periodic,
                            std::span<const int> ranks, std::span<const int> groups);

// Both are numbered from 0, by rank; no domain has ranks of two nodes.
struct RankGroups {
  std::vector<int> nodes;
  std::vector<int> domains;
};

// Returns the rank of each cell, row-major: of row-major order, the same node by node and in it
// domain by domain, and blocks of equal extents (where nodes have equally many ranks), which are
// divided into such blocks for domains (where these have), the first with the fewest links between
// nodes, and of those, the fewest between domains.
std::vector<int> ranks_by_node(const std::vector<int>& extents, const std::vector<bool>& periodic,
                               const RankGroups& groups);

}  // namespace ropewalk::halo
