// Test data of the collectives: floats that tell rank, place and serial apart, with sums that are
// exact in any order.
#pragma once

#include <cstddef>
#include <string>

#include "collectives/shape.hpp"

namespace ropewalk::bench {

// Whole numbers below 1024, so sums of fewer than 2^14 ranks have one right answer.
float value(int rank, std::size_t index, unsigned serial);
void fill(const CallShape& shape, float* send, unsigned serial);

// What changes a send buffer between timed calls: every element becomes the same number, at the
// speed of stores.
float flat_value(int rank, unsigned serial);
void rewrite(const CallShape& shape, float* send, unsigned serial);

enum class Filled { by_place, flat };
// The result is empty where `receive` is what the collective makes of all ranks' buffers; otherwise
// what is wrong.
std::string check(const CallShape& shape, const float* receive, unsigned serial, Filled filled);
// So that a result of an earlier call is not taken for this one's.
void spoil(const CallShape& shape, float* receive);

}  // namespace ropewalk::bench
