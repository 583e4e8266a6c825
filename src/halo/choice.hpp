// The measurement behind Strategy::automatic.
#pragma once

#include <cstddef>
#include <functional>

#include "mpi/mpi.hpp"

namespace ropewalk::halo {

// Runs that are not timed. The first sets up connections and registrations, and brings into the
// caches what the run of another alternative has driven out.
enum class Warming { once, each_time };

// Collective, inside of collectively(). Calls run(0) to run(count - 1) a few times in turn, and
// returns the one whose slowest rank was fastest, the same on all ranks.
std::size_t fastest(mpi::Comm, std::size_t count, Warming,
                    const std::function<void(std::size_t)>& run);

}  // namespace ropewalk::halo
