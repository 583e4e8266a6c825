// z = a*x + y, the kernel of Grid's memory benchmark and of STREAM's triad, in the ways a machine
// can run it.
#pragma once

#include <cstddef>

namespace ropewalk::bench {

enum class Stores {
  plain,     // what a compiler makes of the loop, for the widest vectors of this CPU
  streaming  // non-temporal: no line of z is read before it is written
};

// Returns true where this CPU has non-temporal stores that we use (x86-64).
bool has_streaming_stores();

// x, y and z must be 64-byte aligned and may not overlap.
void triad(float* z, const float* x, const float* y, float a, std::size_t count, Stores stores);
void triad(double* z, const double* x, const double* y, double a, std::size_t count, Stores stores);

}  // namespace ropewalk::bench
