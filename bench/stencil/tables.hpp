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
  int threads = 1;  // of each rank
  bool periodic = false;
};

std::vector<Json> rows(const StencilContext& context, const StencilSizeResult& result);
std::string table(const std::vector<StencilSizeResult>& results, Computing computing);
std::string summary(const std::vector<StencilSizeResult>& results);

}  // namespace ropewalk::bench
