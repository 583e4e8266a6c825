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

std::vector<Extents> blocks_of(const Extents& extents, int cells) {
  std::vector<Extents> out;
  Extents begun;
  append_blocks(extents, cells, begun, out);
  return out;
}

// The ranks of the first node, in it those of its first domain, in the order of their numbers.
std::vector<int> sorted_by_group(const RankGroups& groups) {
  std::vector<int> ranks(groups.nodes.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  std::ranges::stable_sort(ranks, {}, [&](int rank) {
    const auto i = static_cast<std::size_t>(rank);
    return std::pair(groups.nodes[i], groups.domains[i]);
  });
  return ranks;
}

// Returns how many ranks each group has; 0 where groups have different numbers of them.
int ranks_of_each(std::span<const int> groups) {
  const int count = 1 + *std::ranges::max_element(groups);
  std::vector<int> ranks(static_cast<std::size_t>(count));
  for (const int group : groups) ++ranks[static_cast<std::size_t>(group)];
  const bool equal = std::ranges::all_of(ranks, [&](int each) { return each == ranks[0]; });
  return equal ? ranks[0] : 0;
}

// The place of a cell where blocks stand row-major, and cells in a block as inside() says.
template <class Inside>
int place_in_blocks(Extents cell, const Extents& extents, const Extents& block, Inside&& inside) {
  Extents blocks = extents;
  Extents which = cell;
  int cells = 1;
  for (std::size_t d = 0; d < extents.size(); ++d) {
    blocks[d] /= block[d], which[d] /= block[d], cell[d] %= block[d];
    cells *= block[d];
  }
  return cell_of(which, blocks) * cells + inside(cell);
}

// Each node has one block, in which each domain has one, where its ranks stand row-major.
std::vector<int> in_blocks(const Extents& extents, const Extents& of_node, const Extents& of_domain,
                           std::span<const int> sorted) {
  std::vector<int> out(sorted.size());
  for (std::size_t cell = 0; cell < out.size(); ++cell) {
    const auto in_domain = [&](const Extents& inside) { return cell_of(inside, of_domain); };
    const auto in_node = [&](const Extents& inside) {
      return place_in_blocks(inside, of_node, of_domain, in_domain);
    };
    const int at =
        place_in_blocks(coordinates_of(static_cast<int>(cell), extents), extents, of_node, in_node);
    out[cell] = sorted[static_cast<std::size_t>(at)];
  }
  return out;
}

// The orders that are compared, and the best so far.
class BestOrder {
 public:
  BestOrder(const Extents& extents, const std::vector<bool>& periodic, const RankGroups& groups)
      : extents_(extents), periodic_(periodic), groups_(groups) {}

  void consider(std::vector<int> ranks) {
    const std::int64_t nodes = crossing_links(extents_, periodic_, ranks, groups_.nodes);
    if (!ranks_.empty() && nodes > nodes_) return;
    const std::int64_t domains = crossing_links(extents_, periodic_, ranks, groups_.domains);
    if (!ranks_.empty() && nodes == nodes_ && domains >= domains_) return;
    nodes_ = nodes;
    domains_ = domains;
    ranks_ = std::move(ranks);
  }
  // Whether an order with this many links between nodes may still be the best.
  bool may_take(std::int64_t nodes) const noexcept { return nodes <= nodes_; }
  std::vector<int> take() { return std::move(ranks_); }

 private:
  const Extents& extents_;
  const std::vector<bool>& periodic_;
  const RankGroups& groups_;
  std::vector<int> ranks_;
  std::int64_t nodes_ = 0;
  std::int64_t domains_ = 0;
};

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
                            std::span<const int> ranks, std::span<const int> groups) {
  const auto group_at = [&](int cell) {
    return groups[static_cast<std::size_t>(ranks[static_cast<std::size_t>(cell)])];
  };
  std::int64_t crossing = 0;
  for (int cell = 0; cell < static_cast<int>(ranks.size()); ++cell) {
    const std::vector<int> here = coordinates_of(cell, extents);
    for (std::size_t d = 0; d < extents.size(); ++d) {
      if (here[d] + 1 == extents[d] && !periodic[d]) continue;
      std::vector<int> there = here;
      there[d] = (here[d] + 1) % extents[d];
      if (group_at(cell) != group_at(cell_of(there, extents))) ++crossing;
    }
  }
  return crossing;
}

// Blocks of nodes are compared first, since the links between nodes do not depend on what is inside
// of them; only those with the fewest are divided.
std::vector<int> ranks_by_node(const std::vector<int>& extents, const std::vector<bool>& periodic,
                               const RankGroups& groups) {
  BestOrder best(extents, periodic, groups);
  std::vector<int> numbered(groups.nodes.size());
  std::iota(numbered.begin(), numbered.end(), 0);
  best.consider(std::move(numbered));
  const std::vector<int> sorted = sorted_by_group(groups);
  best.consider(sorted);
  const int of_node = ranks_of_each(groups.nodes);
  if (of_node < 2) return best.take();
  std::vector<std::pair<std::int64_t, Extents>> blocks;
  for (Extents& block : blocks_of(extents, of_node)) {
    std::vector<int> ranks = in_blocks(extents, block, block, sorted);
    blocks.emplace_back(crossing_links(extents, periodic, ranks, groups.nodes), std::move(block));
    best.consider(std::move(ranks));
  }
  const int of_domain = ranks_of_each(groups.domains);
  if (of_domain == 0 || of_domain == of_node) return best.take();
  for (const auto& [links, block] : blocks) {
    if (!best.may_take(links)) continue;
    for (const Extents& part : blocks_of(block, of_domain)) {
      best.consider(in_blocks(extents, block, part, sorted));
    }
  }
  return best.take();
}

}  // namespace ropewalk::halo
