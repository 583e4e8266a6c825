// Each fallback against a plain expectation, on any MPI: Check(holds, what) is told of each.
#pragma once

#include <functional>
#include <string>

#include "mpi/mpi.hpp"

namespace ropewalk::test {

using Check = std::function<void(bool holds, const std::string& what)>;

// Collective. Counts around `count`; every function, in place too where MPI allows it, in one
// blocking call and with a waiter.
void try_fallbacks(mpi::Comm, std::size_t count, const Check&);

}  // namespace ropewalk::test
