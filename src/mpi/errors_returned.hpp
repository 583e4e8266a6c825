// Makes MPI return its errors for a while, whatever error handler the program has given its
// communicator.
#pragma once

#include "mpi/mpi.hpp"

namespace ropewalk::mpi {

// While one stands, errors on the communicator are returned; with the last, its handler is put back
// as it was before the first. Any number may stand at once, on several threads: a process keeps one
// list of them, under a lock that is held while a handler is exchanged. What the program sets
// meanwhile stays. It does nothing where the MPI cannot say which handler there is.
class ErrorsReturned {
 public:
  explicit ErrorsReturned(Comm);  // Error(mpi)
  ~ErrorsReturned();
  ErrorsReturned(const ErrorsReturned&) = delete;
  ErrorsReturned& operator=(const ErrorsReturned&) = delete;

  static bool possible();

 private:
  Comm comm_;
  bool stands_ = false;
};

}  // namespace ropewalk::mpi
