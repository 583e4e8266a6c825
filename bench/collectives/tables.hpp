// Results of the collectives as tables and as rows.
#pragma once

#include <string>
#include <vector>

#include "collectives/measure.hpp"

namespace ropewalk::bench {

struct CollectivesContext {
  int ranks = 0;
  std::string mpi;
  std::map<std::string, Backing> backings;
};

double ratio(const CollectiveResult& result);  // plain MPI's time over ropewalk's

Json row(const CollectivesContext& context, const CollectiveResult& result);
// Results of one collective, one kind of memory and of buffers, by size.
std::string table(const std::vector<CollectiveResult>& results);
// Geometric mean of the ratios, by collective.
std::string summary(const std::vector<CollectiveResult>& results);

}  // namespace ropewalk::bench
