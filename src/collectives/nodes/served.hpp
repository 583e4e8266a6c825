// Movements over nodes whose sizes no rank knows of all ranks.
#pragma once

#include "mpi/fallback.hpp"

namespace ropewalk::collectives::nodes {

// gatherv, scatterv and alltoallv, whose sizes no rank knows of all: MPI's own call begins with an
// agreement of all ranks where MPI has int counts, which costs more than it can be faster.
inline bool takes_unknown_sizes(bool or_faster) {
  return or_faster || mpi::fallback::counts_need_agreement();
}

}  // namespace ropewalk::collectives::nodes
