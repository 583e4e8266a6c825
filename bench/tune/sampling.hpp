// Samples of several ways in turns, by all ranks together.
#pragma once

#include <functional>
#include <vector>

#include "common/ranks.hpp"
#include "tune/search.hpp"

namespace ropewalk::bench {

// So many calls one after the other; microseconds of this rank for all of them, 0 where it is
// another one that holds the clock.
using Sample = std::function<double(int calls)>;

// How long the ways of one size may take.
struct Effort {
  double way_us = 20'000;  // each way, with all its rounds
  int rounds = 15;         // at most
  static constexpr int least_rounds = 5;
};

// Collective: a value a way and a round, of the slowest rank. Each round begins with another way.
Times in_turns(const Ranks& ranks, const std::vector<Sample>& ways, const Effort& effort);

}  // namespace ropewalk::bench
