// Which algorithm a reduction over nodes takes, from what all ranks share.
#pragma once

#include <cstddef>
#include <memory>

#include "collectives/nodes/chunk_exchange.hpp"
#include "collectives/nodes/layout.hpp"

namespace ropewalk::collectives::nodes {

// `whole` is the MPI's own call on the whole communicator, `flat` is doubling among all ranks,
// `doubling` goes through one leader a node; the others take a vector in chunks.
enum class Algorithm { whole, flat, doubling, halving, ring, mpi };
struct Choice {
  Algorithm algorithm;
  int slices;               // the vector is dealt to so many leaders a node
  std::size_t chunk_bytes;  // at most, of a slice
};
// What the choice depends on, besides the layout.
struct ReductionRequest {
  std::size_t bytes;
  bool rooted = false;  // one rank gets the result
  int wish = -1;  // ROPEWALK_ALLREDUCE, the number of an Algorithm; -1: none. For allreduce alone
  std::size_t longest_message;  // of the ring, in bytes
};
// The table of docs/explanation/nodes.md, and what ROPEWALK_ALLREDUCE says against it.
Choice choose(const Layout&, const ReductionRequest&);
int most_slices(const Layout&);  // of any choice

// An exchange of chunks by an algorithm that takes them, or by the chain where one rank gets the
// result.
std::unique_ptr<ChunkExchange> make_exchange(Algorithm, const ExchangeSetup&, bool rooted);
// Whether an exchange of it never blocks, so that several threads may each have some.
constexpr bool is_nonblocking(Algorithm algorithm, bool rooted) {
  return rooted || algorithm == Algorithm::ring;
}

// ---- what this rank asks for

// The longest message of the ring, in bytes, from the MPI and its settings; the greatest of all
// ranks holds.
std::size_t longest_message();
int wished_algorithm();   // ROPEWALK_ALLREDUCE
bool wishes_all_sizes();  // ROPEWALK_MOVEMENTS=nodes: the nodes serve all sizes

}  // namespace ropewalk::collectives::nodes
