// Intel MPI's thread-split model: a network endpoint of its own for every thread that communicates.
// Its Developer Guide ("MPI_THREAD_SPLIT Programming Model", "Threading Runtimes Support") wants a
// number from 0 to I_MPI_THREAD_MAX - 1 for every thread, told with the info key `thread_id` of the
// communicators that the thread uses, the same on all ranks. One without it counts as 0: the
// caller's. Nothing of this concerns other MPIs.
#pragma once

#include "mpi/mpi.hpp"

namespace ropewalk::mpi {

// Whether this MPI has the model at all.
bool may_split_threads();

// Returns how many threads this rank's MPI was started for, the caller's included; 0 where it
// splits none. Read from the environment: ranks have to agree on it before they use it.
int split_threads();

// Returns the number of the thread that a lane is: 1 to threads - 1, again and again. 0 is the
// caller's.
constexpr int split_number(int lane, int threads) { return 1 + lane % (threads - 1); }

void set_split_number(Comm, int number);

}  // namespace ropewalk::mpi
