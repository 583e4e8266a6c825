// The cost model of Hashmi et al. 2018 (section "Modeling and Validation of XPMEM based
// MPI_Allreduce"), for the ranks of one node, with constants of this machine.
//
//   T_allreduce = C + (p-1) (v/p) c + (p-1) (a' + (v/p) b')
//
// C is the exchange of flags and addresses, v the vector's bytes, c the time to reduce a byte, a'
// that of one more flag and b' that to copy a byte; all ranks working at once. The term of several
// nodes, ceil(lg m), is 0 here.
#pragma once

#include <cstddef>
#include <vector>

#include "collectives/shape.hpp"

namespace ropewalk::bench {

// Time of a byte while `bytes` are worked on: caches make it depend on them.
struct ByteCost {
  std::size_t bytes;
  double copy_us;
  double reduce_us;
};

struct Model {
  double flag_us = 0;            // a': one exchange of flags among all ranks, divided by p-1
  std::vector<ByteCost> a_byte;  // by ascending bytes
};

// Returns the constants for that size: interpolated in the logarithm of the size, ends held.
ByteCost at(const Model& model, std::size_t bytes);

// Returns the microseconds. The terms are the same for the other collectives: flags, and the bytes
// of the busiest rank.
double predicted_us(const Model& model, Op op, std::size_t bytes, int ranks);

}  // namespace ropewalk::bench
