// These functions measure what flags and copies cost on this machine by themselves, without
// messages and collectives around them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "common/ranks.hpp"
#include "tune/sampling.hpp"

namespace ropewalk::bench {

// A TuneCost is one point of the cost of a mechanism: the time for one size.
struct TuneCost {
  std::string subject;  // a collective, message, flag, copy, or kernel (its copies)
  std::string memory;   // arena or private; for copies: cached or memory
  std::string path;     // the mechanism
  std::size_t bytes = 0;
  double us = 0;
};

// All these functions are collective. flag_costs() returns the time that a cache line takes from
// rank to rank, and nothing for an odd number of ranks.
std::vector<TuneCost> flag_costs(const Ranks& ranks, const Effort& effort);
// Returns the times of copies that all ranks make at once, each within its own memory. A rank
// copies the same part again and again (cached), or another part of `largest` bytes each time
// (memory), with plain stores and with stores that bypass the caches.
std::vector<TuneCost> copy_costs(const Ranks& ranks, std::size_t largest, const Effort& effort);
// Returns the times of the kernel's copies between processes when one rank reads alone, when all
// others read from rank 0, and when each reads from the next. Returns nothing where the kernel
// refuses such copies.
std::vector<TuneCost> kernel_costs(const Ranks& ranks, std::size_t largest, const Effort& effort);
// Returns the same for 2, 4, 8, ... ranks that read at once, as `one_to_all_4` and `all_to_all_4`,
// without what kernel_costs() measures.
std::vector<TuneCost> reader_costs(const Ranks& ranks, std::size_t largest, const Effort& effort);
// Returns the time that a cache line takes between two ranks of a cache domain (`same_domain`), and
// between ranks of two domains (`other_domain`): what there is of them, where there are several
// domains.
std::vector<TuneCost> domain_costs(const Ranks& ranks, const Effort& effort);
// Returns how many samples all these functions take together: the calls of in_turns(), each counted
// once for each of its ways.
int samples_of_copies(std::size_t largest, int ranks);

}  // namespace ropewalk::bench
