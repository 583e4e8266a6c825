// Interleaved, checked samples of steps, and rows and tables of them.
#pragma once

#include <string>
#include <vector>

#include "common/budget.hpp"
#include "common/pages.hpp"
#include "common/ranks.hpp"
#include "common/table.hpp"
#include "fft/options.hpp"

namespace ropewalk::bench {

// Microseconds of a step, one value a round, of the slowest rank.
struct FftTimes {
  std::string way;
  int iterations = 1;
  std::vector<double> us = {};
  std::vector<double> transposes_us = {};
  std::vector<double> local_us = {};
};

struct FftResult {
  FftCase measured;
  double bytes = 0;  // that all ranks send to others in a step
  std::vector<FftTimes> times;
  BackingReport backing;
  bool is_serial_checked = false;
  std::string wrong;  // of any rank; empty: all right
};

Expected expected(const FftOptions& options, const FftCase& one);
// Collective.
FftResult measure(const FftOptions& options, const Ranks& ranks, const Budget& budget,
                  const LineLibrary& library, ThreadTeam& team, const FftCase& one);

}  // namespace ropewalk::bench
