// Random parts of arrays, whose exchange every rank can foretell.
#pragma once

#include <cstdint>
#include <string>

#include "ropewalk/communicator.hpp"

namespace ropewalk::test {

// Collective. Makes `rounds` random exchanges of parts and calls of each. Returns what was wrong on
// this rank first, or "".
std::string random_subarrays(Communicator, std::uint64_t seed, int rounds);

}  // namespace ropewalk::test
