// What the machine can do at most, measured: multiply-adds in registers, and bytes from where an
// operator's data lie.
#pragma once

#include <cstddef>

#include "ropewalk/memory.hpp"
#include "ropewalk/schedule.hpp"

namespace ropewalk::bench {

// Gflop/s of multiply-adds on registers, all threads of the team together.
double peak_gflops(ThreadTeam& team, bool doubles);

// MB/s of a pass over `bytes`, again and again: the better of reading all and of z = a x + y.
double bandwidth_mb_per_s(ThreadTeam& team, std::size_t bytes);

// The loops, of one thread. `passes` times over; sums and products are returned, to be kept.
double multiply_adds(std::size_t rounds, bool doubles);  // flops_a_round each
double flops_a_round(bool doubles);
float read_all(const float* numbers, std::size_t count);

}  // namespace ropewalk::bench
