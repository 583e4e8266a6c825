// The table of MPI's functions for a process that has no MPI.
#pragma once

namespace ropewalk::without_mpi {

// Puts the table in MPI's place, for good. Throws Error(unsupported) where this process uses an
// MPI.
void install();

}  // namespace ropewalk::without_mpi
