// Checks that all ranks make together, so that an error of one is an error of all and none is left
// waiting: facts are exchanged first, acted on afterwards.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "mpi/joint.hpp"
#include "mpi/mpi.hpp"

namespace ropewalk::halo {

using mpi::jointly;

// A number that all ranks must have passed alike.
struct Fact {
  std::string name;
  std::int64_t value;
};

// Collective, with the same number of facts on every rank. Throws Error(argument) on every rank,
// naming the first fact that differs. Of each number in `largest` the largest over the ranks comes
// back, with the same call.
void agree(mpi::Comm, std::span<const Fact> facts, std::span<std::int64_t> largest = {});

}  // namespace ropewalk::halo
