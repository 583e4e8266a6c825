// The checks of the lists of neighbors: first those of one rank, then those of what two ranks say
// of each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ropewalk/irregular_halo.hpp"

namespace ropewalk::irregular {

// Throws Error(argument).
[[noreturn]] inline void refuse(const std::string& text) { throw Error(ErrorCode::argument, text); }

// What a rank says to another of what the two exchange.
struct Promise {
  std::int64_t is_listed = 0;
  std::int64_t sent = 0;      // elements
  std::int64_t received = 0;  // likewise
};

// Throws Error(argument).
void check_lists(const std::vector<Neighbor>&, int ranks, std::size_t elements,
                 std::size_t element_bytes);
// `own` and `theirs` have one entry for each rank: what this rank says to it, and what it says.
void check_promises(const std::vector<Promise>& own, const std::vector<Promise>& theirs, int rank);
// What a combination takes.
void check_operation(std::size_t element_bytes, ElementType, ReductionOp);

}  // namespace ropewalk::irregular
