// What reductions must give: one element after the other, in plain scalar code that shares nothing
// with the kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ropewalk/types.hpp"

namespace ropewalk::testing {

// Values worth reducing. Ordinary ones are finite and of mixed size; special ones have zeros of
// both signs, infinities, NaNs, subnormals and extremes among them. A function of the seed.
enum class Values { ordinary, special };
void fill(ElementType, Values, std::uint64_t seed, std::byte* elements, std::size_t count);

// in_0 op in_1 op ..., left to right; writes the bytes that hold values, not those of gaps (but for
// replace and no_op, which copy whole elements).
void reference(ElementType, ReductionOp, const std::vector<const std::byte*>& inputs,
               std::size_t count, std::byte* output);

// Same bits, except that one NaN is as good as another.
bool same(ElementType, const std::byte* a, const std::byte* b);

// Returns a half as double, exactly, and the nearest half of a double (ties to even). It is not for
// NaN.
double value_of(ElementType, std::uint16_t half);
std::uint16_t nearest(ElementType, double value);
bool is_nan(ElementType, std::uint16_t half);

}  // namespace ropewalk::testing
