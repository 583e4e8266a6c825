#include "tune/places.hpp"

#include "node/rank_nodes.hpp"

namespace ropewalk::bench {

bool NodePlaces::is_first_of_node(int rank) const {
  const auto own = node_of.begin() + rank;
  return std::find(node_of.begin(), own, *own) == own;
}

int NodePlaces::opposite(int rank) const {
  const int own = node_of[at(rank)];
  const int other = own % 2 == 0 ? own + 1 : own - 1;
  auto place = std::count(node_of.begin(), node_of.begin() + rank, own);
  for (std::size_t peer = 0; peer < node_of.size(); ++peer) {
    if (node_of[peer] == other && place-- == 0) return static_cast<int>(peer);
  }
  return -1;
}

NodePlaces places_of(const Ranks& ranks) {
  NodePlaces places;
  places.node_of = node::nodes_of_ranks(mpi::comm_world());
  places.nodes = 1 + *std::ranges::max_element(places.node_of);
  places.least = places.most = ranks.size();
  for (int node = 0; node < places.nodes; ++node) {
    const auto here = static_cast<int>(std::ranges::count(places.node_of, node));
    places.least = std::min(places.least, here);
    places.most = node == 0 ? here : std::max(places.most, here);
  }
  return places;
}

}  // namespace ropewalk::bench
