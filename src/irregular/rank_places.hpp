// Where the ranks of a communicator are: what the making of an exchange asks.
#pragma once

#include <algorithm>
#include <vector>

#include "mpi/mpi.hpp"
#include "node/rank_nodes.hpp"
#include "ropewalk/collectives.hpp"
#include "ropewalk/communicator.hpp"

namespace ropewalk::irregular {

struct RankPlaces {
  // Collective.
  explicit RankPlaces(Communicator communicator) : all(communicator), comm{communicator.handle()} {
    nodes = node::nodes_of_ranks(comm);
    for (int peer = 0; peer < all.size(); ++peer) {
      if (is_here(peer)) ++here;
    }
  }
  bool is_here(int peer) const { return node_of(peer) == node_of(all.rank()); }
  int node_of(int peer) const { return nodes[static_cast<std::size_t>(peer)]; }
  // The number of a rank among those of its node, which is its place in their window.
  int place_of(int peer) const {
    return static_cast<int>(std::count(nodes.begin(), nodes.begin() + peer, node_of(peer)));
  }

  Collectives all;
  mpi::Comm comm;
  std::vector<int> nodes;
  int here = 0;  // ranks on this node
};

}  // namespace ropewalk::irregular
