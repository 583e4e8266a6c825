// Results of the collectives as tables and as rows.
#pragma once

#include <string>
#include <vector>

#include "collectives/measure.hpp"

namespace ropewalk::bench {

struct CollectivesContext {
  int ranks = 0;
  std::string mpi;
  std::map<std::string, BackingReport> backings;
  std::vector<int> ranks_on;  // of each node, the root's first
  double line_rate = 0;       // MB/s of a node, one way; 0: not known
};

double ratio(const CollectiveResult& result);  // plain MPI's time over ropewalk's
// The middle half of the ratios within each round: how sure the ratio is.
struct Quartiles {
  double low = 0;
  double high = 0;
};
Quartiles ratio_quartiles(const CollectiveResult& result);

Json row(const CollectivesContext& context, const CollectiveResult& result);
// Results of one collective, one kind of memory and of buffers, by size.
std::string table(const std::vector<CollectiveResult>& results);
// Geometric mean of the ratios, by collective.
std::string summary(const std::vector<CollectiveResult>& results);

}  // namespace ropewalk::bench
