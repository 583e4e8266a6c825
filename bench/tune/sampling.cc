#include "tune/sampling.hpp"

#include <algorithm>

#include "collectives/shape.hpp"
#include "common/timed_threads.hpp"

namespace ropewalk::bench {
namespace {

constexpr double shortest_sample_us = 200;
// The time of reading the clock is subtracted, which may leave nothing of a time. Ratios need more.
constexpr double least_us = 0.001;

// Calibrated has the number of calls in a sample, which is the same on all ranks, and the
// wall-clock time of one call on the slowest rank.
struct Calibrated {
  int calls = 1;
  double call_us = 0;
};

Calibrated calibrated(const Ranks& ranks, const Sample& way, double wanted_us) {
  way(1);  // The first call makes connections, registrations and pages.
  for (int calls = 1;;) {
    ranks.barrier();
    const double begin = now_us();
    way(calls);
    const double us = ranks.max(now_us() - begin);
    const Calibrated found{iterations_for(us / calls, wanted_us), us / calls};
    if (us >= wanted_us / 4 || calls >= found.calls) return found;
    calls = std::min(found.calls, calls * 8);
  }
}

}  // namespace

Times in_turns(const Ranks& ranks, const std::vector<Sample>& ways, const Effort& effort) {
  const double wanted =
      std::clamp(effort.way_us / effort.rounds, shortest_sample_us, effort.longest_sample_us);
  std::vector<Calibrated> all;
  double sample_us = 0;
  for (const Sample& way : ways) {
    all.push_back(calibrated(ranks, way, wanted));
    sample_us = std::max(sample_us, all.back().calls * all.back().call_us);
  }
  const int rounds = std::clamp(static_cast<int>(effort.way_us / sample_us), Effort::least_rounds,
                                std::max(effort.rounds, Effort::least_rounds));
  Times times(ways.size());
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < ways.size(); ++i) {
      const std::size_t way = (i + static_cast<std::size_t>(round)) % ways.size();
      ways[way](1);  // The other ways have left their own data in the caches.
      ranks.barrier();
      const double us = ranks.max(ways[way](all[way].calls));
      times[way].push_back(std::max(us / all[way].calls, least_us));
    }
  }
  return times;
}

}  // namespace ropewalk::bench
