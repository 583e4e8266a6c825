// What the binary interfaces of MPI differ in where windows are concerned; abi.hpp has the rest.
//
// Every entry is proved equal to the real mpi.h of each MPI by tests/mpi/abi_proof.cc.
#pragma once

#include "mpi/mpi.hpp"

namespace ropewalk::mpi {

struct WindowAbi {
  int lock_exclusive, lock_shared;  // MPI_LOCK_EXCLUSIVE, MPI_LOCK_SHARED
  int no_check;                     // MPI_MODE_NOCHECK
  int create_flavor;                // the attribute key MPI_WIN_CREATE_FLAVOR
  int flavor_allocate;              // MPI_WIN_FLAVOR_ALLOCATE, a value of that attribute
};
WindowAbi window_abi_of(Family) noexcept;

}  // namespace ropewalk::mpi
