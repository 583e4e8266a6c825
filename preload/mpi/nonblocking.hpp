// Whether nonblocking collectives are served.
#pragma once

#include "mpi/mpi.hpp"
#include "ropewalk/collectives.hpp"

namespace ropewalk::preload {

// Collective. A thread of each rank makes these calls, so that all ranks need MPI_THREAD_MULTIPLE,
// and a core for it. With ROPEWALK_NONBLOCKING=1 they are served on shared cores, too, with 0
// never. The thread is started here: where one rank gets none, no rank serves them.
bool serves_nonblocking(Collectives&, mpi::Comm);
// Collective, where serves_nonblocking() is true. Each rank knows the sizes of its own blocks
// alone, so that small exchanges would be served, too, and take longer than MPI's. They are served
// on request.
bool serves_nonblocking_exchanges(mpi::Comm);
// Whether this rank makes these calls without a thread, on one node. Local. The table of requests,
// which they are in, is used by one thread of the program at a time.
bool serves_rounds() noexcept;
// A communicator for which the first was true is freed.
void leave_place() noexcept;

}  // namespace ropewalk::preload
