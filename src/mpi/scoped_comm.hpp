// A communicator that is freed at the end of its scope.
#pragma once

#include <exception>
#include <utility>

#include "mpi/mpi.hpp"

namespace ropewalk::mpi {

// Freeing is collective, so the scope must end on all ranks of the communicator alike, however it
// ends.
struct ScopedComm {
  Comm comm = comm_null();

  ScopedComm() = default;
  ~ScopedComm() { reset(); }
  ScopedComm(const ScopedComm&) = delete;
  ScopedComm& operator=(const ScopedComm&) = delete;

  void reset() noexcept {
    try {
      if (comm != comm_null() && !finalized()) free(comm);
    } catch (const std::exception&) {
      // Nothing depends on it.
    }
    comm = comm_null();
  }
  // It is the caller's from here on.
  Comm release() noexcept { return std::exchange(comm, comm_null()); }
};

}  // namespace ropewalk::mpi
