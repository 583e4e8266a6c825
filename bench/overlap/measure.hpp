// Measuring the four ways to do an exchange and a loop, in turn, in the same processes and buffers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/ranks.hpp"
#include "common/report.hpp"
#include "comms/faces.hpp"
#include "overlap/kernel.hpp"
#include "overlap/options.hpp"
#include "ropewalk/schedule.hpp"

namespace ropewalk::bench {

enum class Way { compute, exchange, one_after_other, overlapped };
constexpr std::size_t ways = 4;

struct OverlapResult {
  int L = 0;
  Strategy strategy = Strategy::concurrent;
  int comm_threads = 0;
  int lanes = 1;
  int iterations = 1;              // of a sample
  std::size_t exchange_bytes = 0;  // sent by a rank
  double sites = 0;                // of the interior, computed by a rank in a pass
  std::vector<double> us[ways];    // [round], slowest rank
  double stolen = 0;               // share of the interior that comm threads computed
  bool verified = true;
  std::string wrong;

  double median(Way way) const;
  double hidden() const;  // (compute + exchange - overlapped) / min(compute, exchange)
  double gain() const;    // one after the other / overlapped
};
double hidden_share(double compute, double exchange, double both);

class OverlapMeasurement {
 public:
  // Collective; errors are joint.
  OverlapMeasurement(const OverlapOptions& options, const Ranks& ranks);

  int threads() const noexcept { return team_.size(); }
  bool crowded() const noexcept { return team_.crowded(); }
  int lanes() const noexcept { return lanes_; }
  int rounds() const noexcept { return rounds_; }
  const std::vector<int>& grid() const noexcept { return grid_.extents(); }
  const std::vector<int>& comm_list() const noexcept { return comm_list_; }
  // Collective. Empty: `direct` is not possible here.
  std::vector<OverlapResult> measure(int L, Strategy strategy, Report& report, double share,
                                     double share_each);

 private:
  struct Case;
  double sample(Case& one, Way way, int iterations);
  void step(Case& one, Way way);
  void checked_samples(Case& one, int round);
  int calibrate(Case& one);

  const OverlapOptions& options_;
  const Ranks& ranks_;
  CartesianGrid grid_;
  ThreadTeam team_;
  std::vector<int> comm_list_;
  int lanes_;
  EndpointSet endpoints_;
  int rounds_;
  std::uint64_t serial_ = 0;
};

}  // namespace ropewalk::bench
