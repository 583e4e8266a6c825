// Counts the allocations of a test program: every operator new, but for those that the MPI of
// threads makes for itself. Programs that count compile counted_allocations.cc in: it replaces
// operator new, which no other test should get from a library.
#pragma once

#include "mpi/library.hpp"
#include "mpi/mpi.hpp"

namespace ropewalk::test {

void begin_counting() noexcept;
int end_counting() noexcept;  // allocations since begin_counting(), of all threads

// Returns the same library, whose functions mark their time as MPI's own. There is one in each
// process.
const mpi::Library* marked_library(const mpi::Library& of);

// In step with all ranks, so that no one allocates for other reasons while one counts.
template <class Body>
void at_rank_zero(int rank, Body&& body) {
  mpi::barrier(mpi::comm_world());
  if (rank == 0) body();
  mpi::barrier(mpi::comm_world());
}

}  // namespace ropewalk::test
