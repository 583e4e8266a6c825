// The thresholds of the operators: rows of ropewalk's table (docs/reference/thresholds.md), which a
// profile may replace.
#pragma once

namespace ropewalk::lattice::detail {

struct OperatorLimits {
  double streamed_links_bytes;  // larger links of a rank come from memory in every hop
  int amortising_extent;        // fifth dimensions from here on use a link that has been read often
  double cached_bytes;          // beyond, data of the ranks on one cache come from memory
  double cached_slices_bytes;   // the same for the spinors of operators with a fifth dimension
  int cores_a_cache;            // that share a third-level cache
};

// Taken once a process. Throws Error(argument) where the profile cannot be understood.
const OperatorLimits& limits();

}  // namespace ropewalk::lattice::detail
