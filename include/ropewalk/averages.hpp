// These functions average over the ranks of a Collectives: they divide sums by the number of ranks.
#pragma once

#include <cstddef>

#include "ropewalk/collectives.hpp"
#include "ropewalk/export.hpp"
#include "ropewalk/types.hpp"

namespace ropewalk {

// These do the same as Collectives::allreduce, reduce and reduce_scatter with ReductionOp::sum, and
// then divide the elements by size(). Where ropewalk serves the call on one node, and in
// allreduce_average and reduce_average over several, float16 and bfloat16 are summed and divided in
// float32 and rounded once; elsewhere the sum is rounded, too. They throw Error(argument) on every
// rank for elements other than floating point and complex, and for what the reduction itself
// refuses. A call looks like this:
//   ropewalk::allreduce_average(collectives, gradient, gradient, count, ElementType::float32);
RW_EXPORT void allreduce_average(Collectives&, const void* send, void* receive, std::size_t count,
                                 ElementType);
RW_EXPORT void reduce_average(Collectives&, const void* send, void* receive, std::size_t count,
                              ElementType, int root);
RW_EXPORT void reduce_scatter_average(Collectives&, const void* send, void* receive,
                                      const std::size_t* counts, ElementType);

}  // namespace ropewalk
