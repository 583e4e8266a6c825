// Reduce, gather and scatter of small blocks straight between ranks, wherever they are: for an MPI
// whose nonblocking calls take longer than a few messages do.
#include <bit>
#include <cstring>

#include "collectives/nodes/algorithms.hpp"
#include "collectives/nodes/arena_block.hpp"
#include "collectives/nodes/chunk_exchange.hpp"

namespace ropewalk::collectives::nodes {
namespace {

void place_own(void* to, const void* own, std::size_t bytes) {
  if (to != nullptr && to != own && bytes > 0) std::memcpy(to, own, bytes);
}

}  // namespace

// A binomial tree whose numbers count from the root, so ranges of neighbours are combined. A leaf
// sends what the caller gave it.
void flat_reduce(Nodes& nodes, const void* send, void* receive, std::size_t count,
                 const Operation& operation, int root) {
  const std::size_t bytes = count * operation.element_bytes;
  const auto all = static_cast<unsigned>(nodes.layout().size());
  const unsigned own = (static_cast<unsigned>(nodes.layout().rank - root) + all) % all;
  const auto rank_of = [&](unsigned number) {
    return static_cast<int>((number + static_cast<unsigned>(root)) % all);
  };
  Messages& messages = nodes.messages();
  if (own % 2 != 0) return messages.send(send, bytes, rank_of(own - 1), messages.small_tag());
  const ArenaBlock other(bytes);
  const ArenaBlock partial(own == 0 ? 0 : bytes);
  void* sum = own == 0 ? receive : partial.data();
  const void* mine = send;
  for (unsigned step = 1; step < all; step *= 2) {
    if ((own & step) != 0) {
      return messages.send(mine, bytes, rank_of(own - step), messages.small_tag());
    }
    if (own + step >= all) continue;
    messages.receive(other.data(), bytes, rank_of(own + step), messages.small_tag());
    combine_two(operation, sum, mine, other.data(), count);
    mine = sum;
  }
}

void flat_gather(Nodes& nodes, const void* send, std::size_t bytes, void* receive,
                 const Blocks& blocks, int root) {
  Messages& messages = nodes.messages();
  const int tag = messages.movement_tag();
  if (nodes.layout().rank != root) return messages.send(send, bytes, root, tag);
  const auto place = [&](int rank) {
    return static_cast<std::byte*>(receive) + blocks.displacements[rank];
  };
  Requests requests;
  for (int rank = 0; rank < nodes.layout().size(); ++rank) {
    if (rank != root) requests.receive(place(rank), bytes, rank, tag, messages.comm());
  }
  place_own(place(root), send, bytes);
  nodes.waits().wait(requests);
}

void flat_scatter(Nodes& nodes, const void* send, const Blocks& blocks, void* receive,
                  std::size_t bytes, int root) {
  Messages& messages = nodes.messages();
  const int tag = messages.movement_tag();
  if (nodes.layout().rank != root) return messages.receive(receive, bytes, root, tag);
  const auto block = [&](int rank) {
    return static_cast<const std::byte*>(send) + blocks.displacements[rank];
  };
  Requests requests;
  requests.sends.reserve(static_cast<std::size_t>(nodes.layout().size()));  // before any is begun
  for (int rank = 0; rank < nodes.layout().size(); ++rank) {
    if (rank == root) continue;
    requests.sends.push_back(mpi::isend(block(rank), bytes, rank, tag, messages.comm()));
  }
  place_own(receive, block(root), bytes);
  nodes.waits().wait(requests);
}

}  // namespace ropewalk::collectives::nodes
