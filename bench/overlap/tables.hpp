// The results of ropewalk-bench-overlap as tables and rows.
#pragma once

#include <string>
#include <vector>

#include "common/report.hpp"
#include "overlap/measure.hpp"

namespace ropewalk::bench {

struct OverlapContext {
  int ranks = 0;
  int threads = 0;
  int passes = 1;
  std::string mpi;
  std::vector<int> rank_grid;
};

Json overlap_row(const OverlapContext& context, const OverlapResult& result);
// Times and bandwidths over the number of comm threads: the two figures of Meadows et al. 2018.
std::string overlap_table(const OverlapContext& context, const std::vector<OverlapResult>& results);
std::string overlap_summary(const std::vector<OverlapResult>& results);

}  // namespace ropewalk::bench
