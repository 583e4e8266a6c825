// Which node each rank of a communicator is on: facts that all ranks share, so algorithms may be
// chosen by them.
#pragma once

#include <vector>

namespace ropewalk::collectives::nodes {

struct NodeLayout {
  int rank = 0;                           // this one
  int node = 0;                           // its node
  std::vector<int> node_of;               // of each rank
  std::vector<int> place_of;              // of each rank among those of its node
  std::vector<std::vector<int>> members;  // ranks of each node, ascending; nodes by lowest rank
  int least = 1;                          // ranks on the node that has the fewest
  int most = 1;                           // and on the one that has the most
  bool contiguous = true;                 // every node is a range of ranks

  int count() const noexcept { return static_cast<int>(members.size()); }
  int size() const noexcept { return static_cast<int>(node_of.size()); }
  int place() const noexcept { return place_of[static_cast<std::size_t>(rank)]; }
  const std::vector<int>& own() const noexcept { return members[static_cast<std::size_t>(node)]; }
  // The rank at a place of a node; place 0 is the node's lowest rank.
  int at(int node_index, int place_there) const noexcept {
    return members[static_cast<std::size_t>(node_index)][static_cast<std::size_t>(place_there)];
  }
  bool is_own(int other) const noexcept { return node_of[static_cast<std::size_t>(other)] == node; }
};

// From the number of each rank's node; nodes are numbered by their lowest rank.
NodeLayout layout_of(const std::vector<int>& numbers, int rank);

}  // namespace ropewalk::collectives::nodes
