// in_turns() takes samples of several ways in turns, on all ranks together.
#pragma once

#include <functional>
#include <vector>

#include "common/ranks.hpp"
#include "tune/search.hpp"

namespace ropewalk::bench {

// A Sample makes so many calls one after the other. It returns the microseconds that all of them
// took on this rank, or 0 where another rank measures the time.
using Sample = std::function<double(int calls)>;

// Effort says how long the ways of one size may take.
struct Effort {
  double way_us = 20'000;  // each way, with all its rounds
  int rounds = 15;         // at most
  // In a sample of this length its beginning and its end no longer count; longer ones gain nothing.
  double longest_sample_us = 2000;
  static constexpr int least_rounds = 5;
};

// Collective. Returns for each way and round the microseconds of one call on the slowest rank. Each
// round begins with another way.
Times in_turns(const Ranks& ranks, const std::vector<Sample>& ways, const Effort& effort);

}  // namespace ropewalk::bench
