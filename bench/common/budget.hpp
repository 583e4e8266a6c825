// How long a bench may take. The work is dealt into parts of unknown cost; each part has the time
// that is left, divided by the parts that are left, so what a cheap part spares the later ones get.
// A part tells what one round of it takes and gets as many rounds as fit.
#pragma once

#include <string>

#include "common/program.hpp"
#include "common/ranks.hpp"

namespace ropewalk::bench {

class Budget {
 public:
  // `parts`: how many begin() there will be. With --rounds and no --time there is no limit.
  Budget(const CommonOptions& options, const Ranks& ranks, int parts);

  // The next part begins.
  void begin();
  // Collective, the same on all ranks: rounds of this part, the measured one included, of at most
  // `wanted`, where one took `round_us` on this rank. At least `least_rounds`, however long they
  // take, so that there is a median.
  int rounds(int wanted, double round_us) const;
  // "up to 1 min 40 s (--time)", for the heading.
  std::string text() const;

  static constexpr int least_rounds = 3;

 private:
  const Ranks& ranks_;
  double seconds_;  // 0: no limit
  double begun_us_;
  double part_begun_us_;
  double part_us_ = 0;
  int parts_left_;
};

}  // namespace ropewalk::bench
