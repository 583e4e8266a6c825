// Measuring the operators: single calls of each case in turn, checked.
#pragma once

#include <string>
#include <vector>

#include "common/ranks.hpp"
#include "common/report.hpp"
#include "common/statistics.hpp"
#include "itt/options.hpp"
#include "ropewalk/schedule.hpp"

namespace ropewalk::bench {

struct OperatorSpec {
  std::string name;  // "Wilson", "DWF4", "sD_w^eo"
  lattice::Vectors vectors = lattice::Vectors::space;
  int Ls = 1;
  bool even_odd = true;
};

// One way to compute an operator: how links are kept, when faces are exchanged.
struct OperatorCase {
  std::string links;     // "full", "two_rows"
  std::string exchange;  // "sequential", "overlap"
  Summary us;            // of calls, slowest rank each
};

struct OperatorResult {
  OperatorSpec spec;
  int L = 0;
  lattice::Extents local{};
  double flops = 0;  // of a call, all ranks
  double bytes = 0;  // least traffic of a call, one rank
  std::string isa;
  std::string strategy;
  std::vector<OperatorCase> cases;
  double error = 0;  // relative, of all ranks
  bool verified = false;
  double peak_gflops = 0;   // of all ranks
  double bandwidth_mb = 0;  // of all ranks, for data of this size
  std::string left_out;     // why it was not measured; empty if it was

  // Mflop/s of all ranks, by Grid's formula: flops / mean.
  double mflops(const OperatorCase& one) const;
  double median_mflops(const OperatorCase& one) const;
  const OperatorCase& best() const;
  const OperatorCase& worst() const;
  double robustness() const;            // worst / best
  double intensity(int ranks) const;    // flops a byte
  double roof_gflops(int ranks) const;  // min(peak, intensity x bandwidth)
};

struct OperatorContext {
  const IttOptions& options;
  const IttLayout& layout;
  const Ranks& ranks;
  ThreadTeam& team;
  int threads = 1;
  double peak_gflops = 0;  // of all ranks
};

// Collective.
std::vector<OperatorResult> measure_operators(const OperatorContext& context, int L,
                                              const std::vector<OperatorSpec>& specs,
                                              Report& report, double share, double share_each);

}  // namespace ropewalk::bench
