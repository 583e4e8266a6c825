// Which node each rank is on, for measurements that go from node to node.
#pragma once

#include <algorithm>
#include <vector>

#include "common/ranks.hpp"

namespace ropewalk::bench {

struct NodePlaces {
  std::vector<int> node_of;  // of each rank
  int nodes = 1;
  int least = 1;  // ranks on the node that has the fewest
  int most = 1;   // and on the one that has the most

  bool over_nodes() const noexcept { return nodes > 1; }
  bool even() const noexcept { return least == most; }
  // Returns the rank that has the place of `rank` on the other node of a pair of nodes: 0 and 1, 2
  // and 3, ... It returns -1 for a node that has no other.
  int opposite(int rank) const;
  bool is_on_first_of_pair(int rank) const { return node_of[at(rank)] % 2 == 0; }
  bool is_first_of_node(int rank) const;

 private:
  static std::size_t at(int rank) { return static_cast<std::size_t>(rank); }
};

// Collective.
NodePlaces places_of(const Ranks& ranks);

}  // namespace ropewalk::bench
