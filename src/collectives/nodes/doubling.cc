// Short vectors among one rank of each node, or among all ranks: recursive doubling, and binomial
// trees.
//
// Reductions combine ranges of neighbours, the lower range on the left: (0 op 1) op (2 op 3). Where
// the number of ranks is no power of two, the first begin in pairs.
#include <bit>
#include <cstring>

#include "collectives/nodes/algorithms.hpp"
#include "collectives/nodes/block.hpp"

namespace ropewalk::collectives::nodes {
namespace {

// left = left op right, or right = left op right: the result lies in `result`.
void combine_into(void* result, const void* left, const void* right, std::size_t count,
                  const Operation& operation) {
  const void* inputs[] = {left, right};
  operation.combine(std::span(&result, 1), inputs, count, kernels::Stores::temporal);
}

template <class RankOf>
void double_up(Nodes& nodes, unsigned all, unsigned position, const RankOf& rank_of, void* data,
               std::size_t count, const Operation& operation) {
  const std::size_t bytes = count * operation.element_bytes;
  const unsigned power = std::bit_floor(all);
  const unsigned pairs = all - power;  // the first 2 * pairs positions begin in pairs
  const Block other(bytes);
  const bool paired = position < 2 * pairs;
  if (paired && position % 2 != 0) {
    nodes.send(data, bytes, rank_of(position - 1), nodes.small_tag());
    nodes.receive(data, bytes, rank_of(position - 1), nodes.small_tag());
    return;
  }
  if (paired) {
    nodes.receive(other.data(), bytes, rank_of(position + 1), nodes.small_tag());
    combine_into(data, data, other.data(), count, operation);
  }
  const unsigned own = paired ? position / 2 : position - pairs;
  for (unsigned step = 1; step < power; step *= 2) {
    const unsigned partner = own ^ step;
    const int rank = rank_of(partner < pairs ? 2 * partner : partner + pairs);
    nodes.exchange(data, bytes, rank, other.data(), bytes, rank, nodes.small_tag());
    const bool lower = own < partner;
    combine_into(data, lower ? data : other.data(), lower ? other.data() : data, count, operation);
  }
  if (paired) nodes.send(data, bytes, rank_of(position + 1), nodes.small_tag());
}

}  // namespace

void doubling_allreduce(Nodes& nodes, std::span<const int> ends, void* data, std::size_t count,
                        const Operation& operation) {
  const auto rank_of = [&](unsigned node) { return ends[node]; };
  double_up(nodes, static_cast<unsigned>(ends.size()), static_cast<unsigned>(nodes.layout().node),
            rank_of, data, count, operation);
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
  if (own != 0) nodes.receive(data, bytes, rank_of(own - below), nodes.small_tag());
  Requests requests;
  for (unsigned step = below / 2; step > 0; step /= 2) {
    if (own + step >= all) continue;
    requests.sends.push_back(
        mpi::isend(data, bytes, rank_of(own + step), nodes.small_tag(), nodes.messages()));
  }
  nodes.wait(requests);
}

// Numbers count from the root round the nodes, so ranges of neighbours are combined here as well.
void tree_reduce(Nodes& nodes, std::span<const int> ends, void* data, std::size_t count,
                 const Operation& operation, int root) {
  const std::size_t bytes = count * operation.element_bytes;
  const int all = static_cast<int>(ends.size());
  const int own = (nodes.layout().node - root + all) % all;
  const auto rank_of = [&](int number) {
    return ends[static_cast<std::size_t>((number + root) % all)];
  };
  const Block other(bytes);
  for (int step = 1; step < all; step *= 2) {
    if (own % (2 * step) != 0) {
      nodes.send(data, bytes, rank_of(own - step), nodes.small_tag());
      return;
    }
    if (own + step >= all) continue;
    nodes.receive(other.data(), bytes, rank_of(own + step), nodes.small_tag());
    combine_into(data, data, other.data(), count, operation);
  }
}

}  // namespace ropewalk::collectives::nodes
