// Text and JSON rows of the overlap benchmark.
#pragma once

#include <string>
#include <vector>

#include "common/report.hpp"
#include "overlap/measure.hpp"

namespace ropewalk::bench {

struct OverlapContext {
  int ranks = 1;
  int nodes = 1;
  int threads = 1;
  std::string precision;
  std::string mpi;
};

Json overlap_row(const OverlapContext& context, const OverlapResults& all,
                 const OverlapResult& result);
// Returns one operator and L: a line for each case, and how all ranks compare with one alone.
std::string overlap_table(const OverlapContext& context, const OverlapResults& all);
std::string overlap_summary(const std::vector<OverlapResult>& results);

}  // namespace ropewalk::bench
