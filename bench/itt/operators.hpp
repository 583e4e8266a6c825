// Measuring the operators: single calls of each case in turn, checked.
#pragma once

#include <string>
#include <vector>

#include "common/budget.hpp"
#include "common/ranks.hpp"
#include "common/report.hpp"
#include "common/statistics.hpp"
#include "itt/options.hpp"
#include "itt/roofline.hpp"
#include "ropewalk/schedule.hpp"

namespace ropewalk::bench {

// Operations of a hop for each site and s-slice, as Benchmark_ITT counts them; and of MULT as
// CCS-QCD counts them, 1320 in its hop and 576 in the inverse clover term.
constexpr int hop_flops_a_site = 1344;
constexpr int mult_flops_a_site = 1320 + 576;

struct OperatorSpec {
  std::string name;  // "Wilson", "DWF4", "sD_w^eo"
  lattice::Vectors vectors = lattice::Vectors::space;
  int Ls = 1;
  bool even_odd = true;
  bool clover = false;  // MULT: the inverse clover term times the hop
  int fields = 1;       // at once

  int flops_a_site() const { return clover ? mult_flops_a_site : hop_flops_a_site; }
};

// One way to compute an operator: how links are kept, when faces are exchanged.
struct OperatorCase {
  std::string links;        // "full", "two_rows"
  std::string exchange;     // "sequential", "overlap"; "/half" behind it: faces of 16 bits
  Summary us;               // of calls, slowest rank each
  double bytes = 0;         // of a call and rank: all is read once, the result written once
  std::string level;        // where so many bytes lie
  double bandwidth_mb = 0;  // of all ranks, measured for so many bytes
};

struct OperatorResult {
  OperatorSpec spec;
  int L = 0;
  lattice::Extents local{};
  double flops = 0;  // of a call, all ranks
  std::string isa;
  int vector_lanes = 1;
  std::string strategy;
  std::vector<OperatorCase> cases;
  double error = 0;  // relative, of all ranks
  bool verified = false;
  double peak_gflops = 0;  // of all ranks
  std::string left_out;    // why it was not measured; empty if it was

  // Mflop/s of all ranks, by Grid's formulas: flops / mean, and flops / min x error / mean.
  double mflops(const OperatorCase& one) const;
  double error_mflops(const OperatorCase& one) const;
  double median_mflops(const OperatorCase& one) const;
  const OperatorCase& best() const;  // by means
  const OperatorCase& worst() const;
  double robustness() const;                                   // worst / best
  double intensity(const OperatorCase& one, int ranks) const;  // flops a byte
  // min(peak, intensity x bandwidth)
  double roof_gflops(const OperatorCase& one, int ranks) const;
  bool bound_by_peak(const OperatorCase& one, int ranks) const;
};

struct OperatorContext {
  const IttOptions& options;
  const IttLayout& layout;
  const Ranks& ranks;
  ThreadTeam& team;
  int threads = 1;
  double peak_gflops = 0;  // of all ranks
  const std::vector<Level>& levels;
  Bandwidth& bandwidth;
  Budget& budget;
};

Expected expected_operator(const IttOptions& options, const lattice::Extents& local, int ranks,
                           int threads, const OperatorSpec& spec);

// Collective. Each operator is a part of the budget.
std::vector<OperatorResult> measure_operators(const OperatorContext& context, int L,
                                              const std::vector<OperatorSpec>& specs,
                                              Report& report, Share share);

}  // namespace ropewalk::bench
