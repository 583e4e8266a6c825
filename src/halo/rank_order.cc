#include "halo/rank_order.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>

namespace ropewalk::halo {

namespace {

using Extents = std::vector<int>;

// The extents of all blocks of so many cells that divide the grid evenly.
void append_blocks(const Extents& extents, int cells, Extents& begun, std::vector<Extents>& out) {
  const std::size_t d = begun.size();
  if (d == extents.size()) {
    if (cells == 1) out.push_back(begun);
    return;
  }
  for (int extent = 1; extent <= std::min(extents[d], cells); ++extent) {
    if (extents[d] % extent != 0 || cells % extent != 0) continue;
    begun.push_back(extent);
    append_blocks(extents, cells / extent, begun, out);
    begun.pop_back();
  }
}

// The ranks of the first node in the order of their numbers, then those of the next.
std::vector<int> sorted_by_node(std::span<const int> nodes) {
  std::vector<int> ranks(nodes.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  std::ranges::stable_sort(ranks, {},
                           [&](int rank) { return nodes[static_cast<std::size_t>(rank)]; });
  return ranks;
}

// Returns 0 where nodes have different numbers of ranks.
int ranks_of_each(std::span<const int> nodes) {
  const int count = 1 + *std::ranges::max_element(nodes);
  std::vector<int> ranks(static_cast<std::size_t>(count));
  for (const int node : nodes) ++ranks[static_cast<std::size_t>(node)];
  const bool equal = std::ranges::all_of(ranks, [&](int each) { return each == ranks[0]; });
  return equal ? ranks[0] : 0;
}

// Each node has one block, and inside of it its ranks stand row-major.
std::vector<int> in_blocks(const Extents& extents, const Extents& block, int cells,
                           std::span<const int> by_node) {
  Extents blocks(extents.size());
  for (std::size_t d = 0; d < extents.size(); ++d) blocks[d] = extents[d] / block[d];
  std::vector<int> out(by_node.size());
  for (std::size_t cell = 0; cell < out.size(); ++cell) {
    std::vector<int> which = coordinates_of(static_cast<int>(cell), extents);
    std::vector<int> inside = which;
    for (std::size_t d = 0; d < extents.size(); ++d) which[d] /= block[d], inside[d] %= block[d];
    const int at = cell_of(which, blocks) * cells + cell_of(inside, block);
    out[cell] = by_node[static_cast<std::size_t>(at)];
  }
  return out;
}

}  // namespace

int cell_of(const std::vector<int>& coordinates, const std::vector<int>& extents) {
  int cell = 0;
  for (std::size_t d = 0; d < extents.size(); ++d) cell = cell * extents[d] + coordinates[d];
  return cell;
}

std::vector<int> coordinates_of(int cell, const std::vector<int>& extents) {
  std::vector<int> out(extents.size());
  for (std::size_t d = extents.size(); d-- > 0;) {
    out[d] = cell % extents[d];
    cell /= extents[d];
  }
  return out;
}

std::int64_t crossing_links(const std::vector<int>& extents, const std::vector<bool>& periodic,
                            std::span<const int> ranks, std::span<const int> nodes) {
  const auto node_at = [&](int cell) {
    return nodes[static_cast<std::size_t>(ranks[static_cast<std::size_t>(cell)])];
  };
  std::int64_t crossing = 0;
  for (int cell = 0; cell < static_cast<int>(ranks.size()); ++cell) {
    const std::vector<int> here = coordinates_of(cell, extents);
    for (std::size_t d = 0; d < extents.size(); ++d) {
      if (here[d] + 1 == extents[d] && !periodic[d]) continue;
      std::vector<int> there = here;
      there[d] = (here[d] + 1) % extents[d];
      if (node_at(cell) != node_at(cell_of(there, extents))) ++crossing;
    }
  }
  return crossing;
}

std::vector<int> ranks_by_node(const std::vector<int>& extents, const std::vector<bool>& periodic,
                               std::span<const int> nodes) {
  std::vector<int> best(nodes.size());
  std::iota(best.begin(), best.end(), 0);
  std::int64_t least = crossing_links(extents, periodic, best, nodes);
  const auto consider = [&](std::vector<int> ranks) {
    const std::int64_t crossing = crossing_links(extents, periodic, ranks, nodes);
    if (crossing >= least) return;
    least = crossing;
    best = std::move(ranks);
  };
  const std::vector<int> by_node = sorted_by_node(nodes);
  consider(by_node);
  if (const int cells = ranks_of_each(nodes); cells > 1) {
    std::vector<Extents> blocks;
    Extents begun;
    append_blocks(extents, cells, begun, blocks);
    for (const Extents& block : blocks) consider(in_blocks(extents, block, cells, by_node));
  }
  return best;
}

}  // namespace ropewalk::halo
