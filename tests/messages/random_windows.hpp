// Random one-sided operations, whose result every rank can foretell.
#pragma once

#include <cstdint>
#include <string>

#include "ropewalk/communicator.hpp"

namespace ropewalk::test {

// Collective. Makes a window and `rounds` random rounds of operations on it, each of one kind.
// Returns what was wrong on this rank first, or "".
std::string random_windows(Communicator, std::uint64_t seed, int rounds);

}  // namespace ropewalk::test
