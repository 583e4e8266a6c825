// The report in the layout of Grid's Benchmark_ITT of 2017 to 2019: the same headings, columns,
// formulas and numbers of digits, so that two reports can be laid side by side. What is not in
// Grid's report stands in lines of its own below; see details.hpp.
#pragma once

#include <string>
#include <vector>

#include "itt/comms.hpp"
#include "itt/operators.hpp"

namespace ropewalk::bench {

struct IttContext {
  const IttOptions& options;
  const IttLayout& layout;
  std::string mpi;
  int threads = 1;
  BackingReport pages;  // of the buffers of the stencil table
};

// Columns L, bytes (of a pass, all ranks), GB/s, Gflop/s, seconds (of all passes), GB/s / node.
std::string memory_table(const IttContext& context, const std::vector<MemoryResult>& results);

// Columns L, Ls, bytes (of a message), MB/s uni and bidi, each with error, least and most.
std::string stencil_table(const IttContext& context, const std::vector<StencilResult>& results);

// Mflop/s per node of the best case of Wilson, DWF4 and DWF5, by L.
std::string node_summary(const IttContext& context, const std::vector<OperatorResult>& results);

// 0.5 (DWF4 at L=16 + at L=12) per node, or of the last two L where these two are not there.
struct ComparisonPoint {
  bool known = false;
  bool verified = true;
  int L = 0;
  int below = 0;
  double mflops = 0;      // per node
  double at = 0;          // DWF4 at L, per node
  double at_below = 0;    // and at the L before
  double robustness = 0;  // of DWF4 at L
  Summary us;             // of DWF4 at L
  double mb_per_s = 0;
};
ComparisonPoint comparison_point(const IttContext& context,
                                 const std::vector<OperatorResult>& results);
std::string comparison_text(const ComparisonPoint& point);

// Tables V and VI of Boyle et al. 2017: Mflop/s per node of operators, by local volume.
std::string volume_table(const IttContext& context, const std::string& title,
                         const std::vector<std::string>& operators,
                         const std::vector<OperatorResult>& results);

}  // namespace ropewalk::bench
