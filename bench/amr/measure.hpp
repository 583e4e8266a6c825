// Interleaved runs of the ways, their shares of a step, and rows and tables of them.
#pragma once

#include <string>
#include <vector>

#include "amr/options.hpp"
#include "common/budget.hpp"
#include "common/pages.hpp"
#include "common/ranks.hpp"
#include "common/table.hpp"

namespace ropewalk::bench {

// Microseconds of a step, one value a round, of the slowest rank.
struct AmrTimes {
  std::string way;
  std::vector<double> us = {};
  std::vector<double> communication_us = {};
  std::vector<double> reductions_us = {};
  std::vector<double> computing_us = {};
};

struct AmrResult {
  int cells = 0;
  double messages = 0;  // of all ranks in a step
  double bytes = 0;     // in these messages
  BackingReport backing;
  double checksum = 0;
  bool is_verified = true;  // all ways had the same checksum in all rounds
  std::vector<AmrTimes> times;
};

Expected expected(const AmrOptions& options, int cells);
// Collective.
AmrResult measure(const AmrOptions& options, const Ranks& ranks, const Budget& budget, int cells);

std::vector<Json> rows(const AmrOptions& options, const Ranks& ranks, const AmrResult& result);
std::string table(const std::vector<AmrResult>& results);
std::string summary(const std::vector<AmrResult>& results);

}  // namespace ropewalk::bench
