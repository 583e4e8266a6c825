// The results of ropewalk-bench-comms as tables of the paper and of Grid, and as rows.
#pragma once

#include <string>
#include <vector>

#include "common/report.hpp"
#include "comms/measure.hpp"

namespace ropewalk::bench {

struct Context {
  int ranks = 0;
  int lanes = 0;
  std::string mpi;
  std::vector<int> rank_grid;
  double line_rate_mb = 0;  // one way; 0: the measured copy is 100 %
  std::map<std::string, BackingReport> backings;
};

// Microseconds of the fastest copy of an exchange, over the kinds of pages.
double limit_us(const Result& result);

// Returns one JSON row for each column but the limit.
std::vector<Json> rows(const Context& context, const Result& result);

// Bidirectional MB/s a rank, the columns of tables I to III, with the limit beside.
std::string paper_table(const Context& context, const std::vector<Result>& results,
                        const std::string& buffers);
// L, Ls, bytes and both bandwidths with error, min and max over ranks and rounds, for one column,
// as Grid's Benchmark_ITT prints them.
std::string itt_table(const Context& context, const std::vector<Result>& results,
                      const std::string& buffers, const std::string& strategy,
                      const std::string& pages);
// Returns the column with the largest bandwidth of all.
const Column& best_column(const Context& context, const std::vector<Result>& results);
std::string summary(const Context& context, const std::vector<Result>& results);

}  // namespace ropewalk::bench
