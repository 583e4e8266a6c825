// What the machine can do at most, measured in the same run: arithmetic in registers, and bytes
// from where an operator's data lie.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "common/machine.hpp"
#include "common/ranks.hpp"
#include "common/statistics.hpp"
#include "ropewalk/memory.hpp"
#include "ropewalk/schedule.hpp"

namespace ropewalk::bench {

// Gflop/s on registers, all threads of the team together: the better of multiply-adds alone and of
// two to one addition, which is what a hop has and what some processors do side by side. The best
// of `samples`, each of some milliseconds.
double peak_gflops(ThreadTeam& team, bool doubles, int samples);

// Where data of a size lie: a cache, or "memory".
struct Level {
  std::string name;
  double capacity = 0;  // bytes that each rank's threads find in it; 0: no end
  double bytes = 0;     // of each rank, when it was measured
  Summary us;           // of a pass, slowest rank
  double mb_per_s = 0;  // of all ranks together; the best sample
};
// By the caches of a core: private ones count once for each thread; one that several cores share
// is divided among the ranks of its node.
std::vector<Level> levels(const std::vector<CoreCache>& caches, int threads, int ranks_per_node,
                          int cores);
const Level& level_of(const std::vector<Level>& levels, double bytes);

// MB/s of all ranks together, each going through `bytes` of its own again and again: the best of
// reading, of z = a x + y, and of that with stores past the caches.
class Bandwidth {
 public:
  Bandwidth(ThreadTeam& team, const Ranks& ranks) : team_(team), ranks_(ranks) {}

  // Collective. It takes a few milliseconds for each way. Throws Error(memory) on every rank where
  // there is no room.
  void sample(double bytes);
  double best_mb_per_s(double bytes) const;  // of all samples of this size; 0: none
  Summary pass_us(double bytes) const;       // of the best way of each sample, slowest rank
  // Beyond this many bytes a rank all is memory: larger sets are measured as this one.
  static constexpr double most_bytes = 1 << 27;

 private:
  struct Samples {
    double best = 0;
    std::vector<double> us;
  };
  static std::size_t numbers_for(double bytes, int workers);

  ThreadTeam& team_;
  const Ranks& ranks_;
  Buffer<float> memory_;
  double room_ = 0;                         // bytes asked for, alike on all ranks
  std::map<std::size_t, Samples> samples_;  // by the numbers of an array and thread
};

// The loops, of one thread. `passes` times over; sums and products are returned, to be kept.
enum class Arithmetic { multiply_adds, two_to_one_addition };
double arithmetic(Arithmetic which, std::size_t rounds, bool doubles);  // flops_a_round each
double flops_a_round(Arithmetic which, bool doubles);
float read_all(const float* numbers, std::size_t count);

}  // namespace ropewalk::bench
