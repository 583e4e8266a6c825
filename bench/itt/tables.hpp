// The report in the layout of Benchmark_ITT, and the rows of the JSON file.
#pragma once

#include <string>
#include <vector>

#include "common/report.hpp"
#include "itt/comms.hpp"
#include "itt/operators.hpp"

namespace ropewalk::bench {

struct IttContext {
  const IttOptions& options;
  const IttLayout& layout;
  std::string mpi;
  int threads = 1;
  Backing pages;  // of the buffers of the stencil table
};

Json memory_row(const IttContext& context, const MemoryResult& result);
Json stencil_row(const IttContext& context, const StencilResult& result);
Json operator_row(const IttContext& context, const std::string& table,
                  const OperatorResult& result);

std::string memory_table(const IttContext& context, const std::vector<MemoryResult>& results);
std::string stencil_table(const IttContext& context, const std::vector<StencilResult>& results);

// Mflop/s per node of Wilson, DWF4 and DWF5, by L; results in that order for each L.
std::string node_summary(const IttContext& context, const std::vector<OperatorResult>& results);
// 0.5 (DWF4 at L=16 + at L=12) per node, or of the last two L where these two are not there.
struct ComparisonPoint {
  bool known = false;
  int L = 0;
  int below = 0;
  double mflops = 0;      // per node
  double at = 0;          // DWF4 at L, per node
  double at_below = 0;    // and at the L before
  double robustness = 0;  // of DWF4 at L
};
ComparisonPoint comparison_point(const IttContext& context,
                                 const std::vector<OperatorResult>& results);
std::string comparison_text(const ComparisonPoint& point);
// Every case of every operator, by means and medians, with intensity and roofline.
std::string operator_table(const IttContext& context, const std::string& title,
                           const std::vector<OperatorResult>& results);

}  // namespace ropewalk::bench
