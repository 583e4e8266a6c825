// Tables and rows of the stencil benchmark.
#pragma once

#include <string>
#include <vector>

#include "common/table.hpp"
#include "stencil/measure.hpp"

namespace ropewalk::bench {

struct StencilContext {
  int ranks = 1;
  std::string mpi;
  std::vector<int> rank_grid;
};

std::vector<Json> rows(const StencilContext& context, const StencilTimes& result);
std::string table(const std::vector<StencilTimes>& results, Computing computing);
std::string summary(const std::vector<StencilTimes>& results);

}  // namespace ropewalk::bench
