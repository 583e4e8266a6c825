// Reductions of a Collectives with any operation, ours or MPI's; the C interface uses these.
#pragma once

#include "collectives/state.hpp"

namespace ropewalk::collectives {

// Tells whether MPI makes the reductions with this operation and takes the elements as they lie,
// with their gaps. Elsewhere such elements are packed first (typed.cc). The answer is the same on
// all ranks.
inline bool leaves_gaps_to_mpi(const Collectives::State& state, const Operation& operation) {
  return operation.packed && state.backend->nodes() != 1;
}

// Each checks all its arguments; `send` may be in place.
void allreduce(Collectives::State&, const void* send, void* receive, std::size_t count,
               const Operation&);
void reduce(Collectives::State&, const void* send, void* receive, std::size_t count,
            const Operation&, int root);
void scan(Collectives::State&, const void* send, void* receive, std::size_t count, const Operation&,
          bool exclusive);
void reduce_scatter(Collectives::State&, const void* send, void* receive, const std::size_t* counts,
                    const Operation&);
// An operation for this call; a pair that MPI does not allow is an error on every rank.
const Operation& checked_operation(Collectives::State&, ElementType, ReductionOp);

}  // namespace ropewalk::collectives
