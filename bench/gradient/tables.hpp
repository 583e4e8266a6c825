// The five figures of section IV of Boyle et al. 2017 as tables, and the rows of the JSON file.
#pragma once

#include <string>
#include <vector>

#include "common/table.hpp"
#include "gradient/measure.hpp"

namespace ropewalk::bench {

struct GradientContext {
  int ranks = 1;
  int nodes = 1;
  int node_ranks = 1;
  std::string threads;  // of a rank, for `improved`
  std::string mpi;
  double line_rate = 0;  // bytes/s of a node, one way; 0: not known
  BackingReport backing;
  std::vector<BackingReport> ring_backings;  // of `improved`, one for each kind of pages
};

// What a rank sends and receives in a ring that moves the least: 2 (n-1)/n of the vector each way
// (Boyle et al. count both directions).
double ring_bytes(std::size_t length, int ranks);
// Returns the microseconds that nothing can do without: on one node the memory's, over several what
// a node must send at its line rate, 2 (N-1)/N of the vector for N nodes. 0 where it is not known.
double limit_us(const GradientContext& context, const GradientResult& result);

std::vector<Json> rows(const GradientContext& context, const GradientResult& result);
// Bandwidth inside communication, communication, everything else, share of communication, wall.
std::string figures(const GradientContext& context, const std::vector<GradientResult>& results);
std::string summary(const GradientContext& context, const std::vector<GradientResult>& results);

}  // namespace ropewalk::bench
