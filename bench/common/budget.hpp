// How long a bench may take, what it announces about that, and how many rounds fit. The work is
// dealt into parts whose cost is known only roughly. Each part gets its share of the time that is
// left, so what one part saves or overdraws is shared by those after it. A part measures one round
// and is given as many as fit: little time means fewer rounds, never fewer parts.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "common/program.hpp"
#include "common/ranks.hpp"
#include "common/report.hpp"
#include "common/timed_threads.hpp"

namespace ropewalk::bench {

// What a part takes, as far as one can know that beforehand, in microseconds.
struct Expected {
  double all_us = 0;    // with all its rounds
  double least_us = 0;  // with the least rounds and samples
};

class Budget {
 public:
  using Clock = std::function<double()>;  // microseconds since any moment

  // Collective. `parts`: in the order in which they begin. With --rounds and no --time there is no
  // limit.
  Budget(const CommonOptions& options, const Ranks& ranks, const std::vector<Expected>& parts,
         Clock clock = now_us);

  // Collective: the next part begins.
  void begin();
  // How long a sample should last, the same on all ranks: `wanted`, or less where `samples` of that
  // length would not fit into this part; at least a quarter of `wanted`.
  double sample_us(double wanted, double samples) const;
  // Collective, the same on all ranks: rounds of this part, the measured one included, of at most
  // `wanted`, where one took `round_us` on this rank. At least `least_rounds`, however long they
  // take, so that there is a median.
  int rounds(int wanted, double round_us) const;
  // What is left of this part, the same on all ranks only right after begin(); infinite where there
  // is no limit.
  double left_us() const;

  double announced_seconds() const;
  // "about 12 s (limit 1 min 40 s: --time)". More than the limit where the least rounds take more.
  std::string text() const;
  // Writes the text into the heading; Report::summary() then says what it came to.
  void announce(Report& report) const { report.announce(text(), announced_seconds()); }

  static constexpr int least_rounds = 3;
  static constexpr double least_share_of_sample = 0.25;

 private:
  Expected from(std::size_t first) const;  // the sum over the parts from this one on

  const Ranks& ranks_;
  Clock clock_;
  double seconds_;  // 0: no limit
  double begun_us_;
  std::vector<Expected> parts_;
  std::size_t next_ = 0;
  double part_begun_us_;
  double part_us_ = 0;
};

// What a part takes in which `columns` are measured in turn: in each round a sample of `sample_us`,
// or of one call if that takes longer, and once more the call, which warms the caches. Calibrating
// a column takes about as long as two rounds.
Expected sampling(double columns, int rounds, double sample_us, double call_us);
// How many samples a part has at least, for Budget::sample_us().
double least_samples(double columns);

}  // namespace ropewalk::bench
