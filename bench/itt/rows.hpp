// Rows of the JSON file. Each has the mean, error, min and max of its times and the flops or bytes,
// so that every number of the report can be worked out again.
#pragma once

#include <string>

#include "common/report.hpp"
#include "itt/tables.hpp"

namespace ropewalk::bench {

Json memory_row(const IttContext& context, const MemoryResult& result);
Json stencil_row(const IttContext& context, const StencilResult& result);
// Returns the best case, and under "cases" all of them.
Json operator_row(const IttContext& context, const std::string& table,
                  const OperatorResult& result);
Json level_row(const IttContext& context, const Level& level, double peak_gflops);
Json comparison_row(const IttContext& context, const ComparisonPoint& point);

}  // namespace ropewalk::bench
