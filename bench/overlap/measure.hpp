// Measuring a hop and its exchange in every way, in turn, in the same processes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/budget.hpp"
#include "common/ranks.hpp"
#include "common/report.hpp"
#include "overlap/options.hpp"
#include "ropewalk/lattice/operators.hpp"

namespace ropewalk::bench {

enum class Way {
  compute,          // all rows, with the faces that came last
  exchange,         // faces, messages
  one_after_other,  // faces, messages, then the rows
  overlapped,
  regions  // overlapped, each phase a parallel region of OpenMP; only where the compiler has that
};
constexpr std::size_t ways = 5;

struct OverlapResult {
  int L = 0;
  std::string op;
  int Ls = 1;
  lattice::Extents rank_grid{};
  lattice::Extents local{};
  Strategy strategy = Strategy::concurrent;
  lattice::FacePrecision face_precision = lattice::FacePrecision::full;
  int comm_threads = 0;
  int lanes = 1;
  int iterations = 1;              // of a sample
  std::size_t exchange_bytes = 0;  // sent by a rank
  double flops = 0;                // of a rank
  std::vector<double> us[ways];    // [round], slowest rank
  std::vector<double> waited_us;   // [round], of an overlapped hop when nothing is left to compute
  // [round], of an exchange: what it takes of the core, faces projected, messages driven and the
  // kernel's work for them; where one thread does all (lone), else nothing.
  std::vector<double> cpu_us;
  double system_us = 0;   // of an exchange, in the kernel, by its count; slowest rank
  double softirq_us = 0;  // of all ranks of the machine
  bool verified = true;
  double error = 0;  // relative

  int faces() const;  // exchanged with other ranks
  double median(Way way) const;
  double hidden() const;  // (compute + exchange - overlapped) / min(compute, exchange)
  double gain() const;    // one after the other / overlapped
  // What is left of an exchange beyond its own use of the core, and the share that is hidden of the
  // lesser of that and the computation.
  double hideable_us() const;
  double hidden_of_hideable() const;
};
double hidden_share(double compute, double exchange, double both);
// Whether each comm thread drives as many messages as the others; Meadows asks for that.
bool evenly_dealt(int faces, int lanes, int comm_threads);

// The same operator on an undivided lattice of the local extents.
struct AloneResult {
  std::vector<double> alone_us;     // while the other ranks rest; mean of the ranks
  std::vector<double> together_us;  // all ranks at once; slowest rank
};

struct OverlapResults {
  AloneResult alone;
  std::vector<OverlapResult> cases;  // by rank grid, strategy, face precision and comm threads
  int ranks = 1;
  double scaling(const OverlapResult& one) const;  // ranks x alone / best of the two orders
  double scaling_limit() const;                    // ranks x alone / together
};

class OverlapMeasurement {
 public:
  // Collective; errors are joint.
  OverlapMeasurement(const OverlapOptions& options, const Ranks& ranks);
  const Budget& budget() const noexcept { return budget_; }

  int threads() const noexcept { return threads_; }
  int lanes() const noexcept { return lanes_; }
  int rounds() const noexcept { return rounds_; }
  // Collective; to be called for each operator and of these for each L. Without cases: none of the
  // strategies is possible here.
  OverlapResults measure(int L, const std::string& op, Report& report, double share,
                         double share_each);

 private:
  std::vector<Expected> expected() const;

  const OverlapOptions& options_;
  const Ranks& ranks_;
  std::vector<IttLayout> layouts_;
  int threads_;
  std::vector<int> comm_list_;
  int lanes_;
  int rounds_;
  Budget budget_;
};

}  // namespace ropewalk::bench
