// The place for what a collective call of the C interface makes.
#pragma once

#include "c_call.hpp"
#include "mpi/collectively.hpp"

namespace ropewalk::mpi {

// Collective. A NULL on one rank is an error on all: none waits for a rank that has returned.
inline void require_out(Comm comm, const void* out) {
  collectively(comm, [&] { require_argument(out, "out"); });
}

}  // namespace ropewalk::mpi
