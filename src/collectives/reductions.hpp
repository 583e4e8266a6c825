// Reductions of a Collectives with any operation, ours or MPI's; the C interface uses these.
#pragma once

#include "collectives/state.hpp"

namespace ropewalk::collectives {

// root -1: every rank gets the result. send may be in place.
void reduce(Collectives::State&, const void* send, void* receive, std::size_t count,
            const Operation&, int root);
void scan(Collectives::State&, const void* send, void* receive, std::size_t count, const Operation&,
          bool exclusive);
void reduce_scatter(Collectives::State&, const void* send, void* receive, const std::size_t* counts,
                    const Operation&);
// An operation for this call; a pair that MPI does not allow is an error on every rank.
const Operation& checked_operation(Collectives::State&, ElementType, ReductionOp);

}  // namespace ropewalk::collectives
