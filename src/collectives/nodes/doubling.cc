// Short vectors among one rank of each node: recursive doubling, and a binomial tree.
//
// Both combine ranges of neighbouring nodes, the lower range on the left: (0 op 1) op (2 op 3).
// Where the number of nodes is no power of two, the first nodes begin in pairs.
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

}  // namespace

void doubling_allreduce(Nodes& nodes, std::span<const int> ends, void* data, std::size_t count,
                        const Operation& operation) {
  const std::size_t bytes = count * operation.element_bytes;
  const auto all = static_cast<unsigned>(ends.size());
  const unsigned power = std::bit_floor(all);
  const unsigned pairs = all - power;  // the first 2 * pairs nodes begin in pairs
  const auto node = static_cast<unsigned>(nodes.layout().node);
  const Block other(bytes);
  const bool paired = node < 2 * pairs;
  if (paired && node % 2 != 0) {
    nodes.send(data, bytes, ends[node - 1], tag::small);
    nodes.receive(data, bytes, ends[node - 1], tag::small);
    return;
  }
  if (paired) {
    nodes.receive(other.data(), bytes, ends[node + 1], tag::small);
    combine_into(data, data, other.data(), count, operation);
  }
  const unsigned own = paired ? node / 2 : node - pairs;
  for (unsigned step = 1; step < power; step *= 2) {
    const unsigned partner = own ^ step;
    const int rank = ends[partner < pairs ? 2 * partner : partner + pairs];
    nodes.exchange(data, bytes, rank, other.data(), bytes, rank, tag::small);
    const bool lower = own < partner;
    combine_into(data, lower ? data : other.data(), lower ? other.data() : data, count, operation);
  }
  if (paired) nodes.send(data, bytes, ends[node + 1], tag::small);
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
      nodes.send(data, bytes, rank_of(own - step), tag::small);
      return;
    }
    if (own + step >= all) continue;
    nodes.receive(other.data(), bytes, rank_of(own + step), tag::small);
    combine_into(data, data, other.data(), count, operation);
  }
}

}  // namespace ropewalk::collectives::nodes
