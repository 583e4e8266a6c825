// Copy and reduce, as fast as the memory allows, for every element type and operation.
//
// This room knows nothing of ranks: it takes pointers and makes one pass over them. It allocates
// nothing, takes no lock and, past the choice of the instruction set, throws nothing.
#pragma once

#include <cstddef>
#include <string>

#include "ropewalk/instruction_set.hpp"
#include "ropewalk/types.hpp"

namespace ropewalk::kernels {

// How results are written. Streaming (non-temporal) stores go around the caches: they save the read
// of each line before it is written, and pay where the output does not fit the cache anyway. They
// end with a store fence, so a release store of the caller orders them as it orders any other.
// Streaming is a wish: heads, tails, elements handled one by one (long double, pairs, complex
// products) and outputs off their natural alignment are stored in the ordinary way.
enum class Stores { temporal, streaming };

// out_j[i] = in_0[i] op in_1[i] op ... op in_{p-1}[i] for every output j, combined strictly from
// left to right, with the same bits whatever the instruction set, alignment, count and stores. (One
// freedom is left to the hardware: which payload comes out where two NaNs meet.)
//
// At least one input (one alone is copied) and one output. An output may be exactly an input; no
// other overlap is allowed. Any alignment will do.
//
// - Integers wrap. Logical operations give 0 or 1. float16 and bfloat16 are accumulated in float32
//   and rounded once, to nearest even; a NaN stays a (quiet) NaN.
// - min and max are a < b ? a : b and a > b ? a : b, as in MPICH: where one is a NaN, b.
// - maxloc and minloc take the lower index of equal values; the gaps inside pairs are not written.
// - Complex products are (ac - bd) + (ad + bc)i, with no special case for infinities.
using ReduceFunction = void (*)(void* const* outputs, int output_count, const void* const* inputs,
                                int input_count, std::size_t count, Stores stores);

// The same for sums that are divided by `divisor` before they are rounded: averages of
// floating-point and complex elements. float16 and bfloat16 are summed and divided in float32 and
// rounded once. A single input is divided alone.
using AverageFunction = void (*)(void* const* outputs, int output_count, const void* const* inputs,
                                 int input_count, std::size_t count, double divisor, Stores stores);

// Finds the kernel for hot paths: ask once, call often. Returns null where supports(op, type) is
// false.
ReduceFunction find(ElementType, ReductionOp);
AverageFunction find_average(ElementType);  // null for what has no average
// Throws Error(unsupported) unless the instruction set is available().
ReduceFunction find(ElementType, ReductionOp, InstructionSet);
AverageFunction find_average(ElementType, InstructionSet);

// Does the same as `find` and a call. Throws Error(argument) for a pair that MPI does not allow,
// and for counts < 1.
void reduce(void* const* outputs, int output_count, const void* const* inputs, int input_count,
            std::size_t count, ElementType, ReductionOp, Stores);

// to == from is allowed, any other overlap is not. Temporal stores stay temporal at every size,
// which memcpy does not promise.
void copy(void* to, const void* from, std::size_t bytes, Stores);
void copy(void* const* outputs, int output_count, const void* from, std::size_t bytes, Stores);

}  // namespace ropewalk::kernels
