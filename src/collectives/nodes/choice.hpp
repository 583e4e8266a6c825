// The algorithms of reductions over nodes, and the values of this rank from which one of them is
// chosen (tuning/over_nodes.hpp).
#pragma once

#include <memory>

#include "collectives/nodes/chunk_exchange.hpp"
#include "tuning/over_nodes.hpp"

namespace ropewalk::collectives::nodes {

using tuning::Algorithm;
using Choice = tuning::ReductionChoice;

// An exchange of chunks by an algorithm that takes them, or by the chain where one rank gets the
// result.
std::unique_ptr<ChunkExchange> make_exchange(Algorithm, const ExchangeSetup&, bool rooted);
// Whether an exchange of it never blocks, so that several threads may each have some.
constexpr bool is_nonblocking(Algorithm algorithm, bool rooted) {
  return rooted || algorithm == Algorithm::ring;
}

// ---- what this rank goes by: the same on all ranks but for `nodes_most_message`, of which the
// greatest holds

tuning::Values values_for_nodes();
bool wishes_all_sizes();  // ROPEWALK_MOVEMENTS=nodes: the nodes serve all sizes

}  // namespace ropewalk::collectives::nodes
