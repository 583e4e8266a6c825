// Tells whether a communicator still computes.
#pragma once

#include <cstdint>

#include "ropewalk/collectives.hpp"

// Returns whether the sum of a one of each rank is right on this rank. Collective.
inline bool sums_ranks(ropewalk::Collectives& on) {
  const std::int64_t one = 1;
  std::int64_t all = 0;
  on.allreduce(&one, &all, 1, ropewalk::ElementType::int64, ropewalk::ReductionOp::sum);
  return all == on.size();
}
