// This file reduces short vectors among one rank of each node, or among all ranks, by recursive
// doubling and by binomial trees.
//
// Reductions combine ranges of neighbours, the lower range on the left: (0 op 1) op (2 op 3). Where
// the number of ranks is no power of two, the first begin in pairs.
#include <bit>
#include <cstring>

#include "collectives/nodes/algorithms.hpp"
#include "collectives/nodes/arena_block.hpp"
#include "collectives/nodes/chunk_exchange.hpp"

namespace ropewalk::collectives::nodes {
namespace {

template <class RankOf>
void double_up(Nodes& nodes, unsigned all, unsigned position, const RankOf& rank_of, void* data,
               std::size_t count, const Operation& operation) {
  const std::size_t bytes = count * operation.element_bytes;
  const unsigned power = std::bit_floor(all);
  const unsigned pairs = all - power;  // the first 2 * pairs positions begin in pairs
  const ArenaBlock other(bytes);
  const bool paired = position < 2 * pairs;
  if (paired && position % 2 != 0) {
    nodes.messages().send(data, bytes, rank_of(position - 1), nodes.messages().small_tag());
    nodes.messages().receive(data, bytes, rank_of(position - 1), nodes.messages().small_tag());
    return;
  }
  if (paired) {
    nodes.messages().receive(other.data(), bytes, rank_of(position + 1),
                             nodes.messages().small_tag());
    combine_two(operation, data, data, other.data(), count);
  }
  const unsigned own = paired ? position / 2 : position - pairs;
  for (unsigned step = 1; step < power; step *= 2) {
    const unsigned partner = own ^ step;
    const int rank = rank_of(partner < pairs ? 2 * partner : partner + pairs);
    nodes.messages().exchange(data, bytes, rank, other.data(), bytes, rank,
                              nodes.messages().small_tag());
    const bool lower = own < partner;
    combine_two(operation, data, lower ? data : other.data(), lower ? other.data() : data, count);
  }
  if (paired) {
    nodes.messages().send(data, bytes, rank_of(position + 1), nodes.messages().small_tag());
  }
}

}  // namespace

void doubling_allreduce(Nodes& nodes, std::span<const int> leaders, void* data, std::size_t count,
                        const Operation& operation) {
  const auto rank_of = [&](unsigned node) { return leaders[node]; };
  double_up(nodes, static_cast<unsigned>(leaders.size()),
            static_cast<unsigned>(nodes.layout().node), rank_of, data, count, operation);
}

void flat_allreduce(Nodes& nodes, void* data, std::size_t count, const Operation& operation) {
  const auto rank_of = [](unsigned rank) { return static_cast<int>(rank); };
  double_up(nodes, static_cast<unsigned>(nodes.layout().size()),
            static_cast<unsigned>(nodes.layout().rank), rank_of, data, count, operation);
}

// A rank hears it from the one below it by its lowest set bit, counted from the root.
void flat_broadcast(Nodes& nodes, void* data, std::size_t bytes, int root) {
  const auto all = static_cast<unsigned>(nodes.layout().size());
  const unsigned own = (static_cast<unsigned>(nodes.layout().rank - root) + all) % all;
  const auto rank_of = [&](unsigned number) {
    return static_cast<int>((number + static_cast<unsigned>(root)) % all);
  };
  const unsigned below = own == 0 ? std::bit_ceil(all) : own & -own;
  if (own != 0) {
    nodes.messages().receive(data, bytes, rank_of(own - below), nodes.messages().small_tag());
  }
  Requests requests;
  for (unsigned step = below / 2; step > 0; step /= 2) {
    if (own + step >= all) continue;
    requests.sends.push_back(mpi::isend(data, bytes, rank_of(own + step),
                                        nodes.messages().small_tag(), nodes.messages().comm()));
  }
  nodes.waits().wait(requests);
}

// Numbers count from the root round the nodes, so ranges of neighbours are combined here as well.
void tree_reduce(Nodes& nodes, std::span<const int> leaders, void* data, std::size_t count,
                 const Operation& operation, int root) {
  const std::size_t bytes = count * operation.element_bytes;
  const int all = static_cast<int>(leaders.size());
  const int own = (nodes.layout().node - root + all) % all;
  const auto rank_of = [&](int number) {
    return leaders[static_cast<std::size_t>((number + root) % all)];
  };
  const ArenaBlock other(bytes);
  for (int step = 1; step < all; step *= 2) {
    if (own % (2 * step) != 0) {
      nodes.messages().send(data, bytes, rank_of(own - step), nodes.messages().small_tag());
      return;
    }
    if (own + step >= all) continue;
    nodes.messages().receive(other.data(), bytes, rank_of(own + step),
                             nodes.messages().small_tag());
    combine_two(operation, data, data, other.data(), count);
  }
}

}  // namespace ropewalk::collectives::nodes
