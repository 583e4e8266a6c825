// What a machine's flags and copies take, without messages and collectives around them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "common/ranks.hpp"
#include "tune/sampling.hpp"

namespace ropewalk::bench {

// A point of the cost of a mechanism.
struct TuneCost {
  std::string subject;  // a collective, message, flag, copy, or kernel (its copies)
  std::string memory;   // arena or private; of copies: cached or memory
  std::string path;     // the mechanism
  std::size_t bytes = 0;
  double us = 0;
};

// All collective. The way of a cache line from rank to rank; none for an odd number of ranks.
std::vector<TuneCost> flag_costs(const Ranks& ranks, const Effort& effort);
// All ranks copy memory of their own at once: the same again and again (cached), or another part of
// `largest` bytes each time (memory); with plain stores and with those past the caches.
std::vector<TuneCost> copy_costs(const Ranks& ranks, std::size_t largest, const Effort& effort);
// Copies by the kernel between processes: of one rank alone, of all others from rank 0, of each
// from the next. None where the kernel refuses.
std::vector<TuneCost> kernel_costs(const Ranks& ranks, std::size_t largest, const Effort& effort);
// in_turns() that all these make together, times their ways.
int samples_of_copies(std::size_t largest);

}  // namespace ropewalk::bench
