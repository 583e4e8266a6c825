// Communicators: ask, duplicate, split, free. Those made here return errors instead of aborting.
#include "mpi/library.hpp"

namespace ropewalk::mpi {
namespace {

// MPI returns the code of the error to the caller once a handler that we wrote has returned.
void ignore_error(void*, int*, ...) {}

Comm ours(Comm comm) {
  if (comm != comm_null()) return_errors(comm);
  return comm;
}

}  // namespace

int rank(Comm comm) {
  int value = 0;
  check(library().call.comm_rank(comm.value, &value), "MPI_Comm_rank");
  return value;
}

int size(Comm comm) {
  int value = 0;
  check(library().call.comm_size(comm.value, &value), "MPI_Comm_size");
  return value;
}

Comm dup(Comm comm) {
  Comm made;
  check(library().call.comm_dup(comm.value, &made.value), "MPI_Comm_dup");
  return ours(made);
}

Comm split(Comm comm, int color, int key) {
  Comm made;
  check(library().call.comm_split(comm.value, color, key, &made.value), "MPI_Comm_split");
  return ours(made);
}

Comm split_shared(Comm comm) {
  const Abi& abi = library().abi;
  Comm made;
  check(library().call.comm_split_type(comm.value, abi.comm_type_shared, 0, abi.info_null,
                                       &made.value),
        "MPI_Comm_split_type");
  return ours(made);
}

void free(Comm& comm) {
  check(library().call.comm_free(&comm.value), "MPI_Comm_free");
  comm = comm_null();
}

// Not MPI_ERRORS_RETURN: its value in the standard ABI differs between MPICH 5.0 (0x143) and Intel
// MPI 2021.19 (0x142, which is MPI_ERRORS_ABORT in MPICH's).
void return_errors(Comm comm) {
  const Functions& call = library().call;
  Word handler = 0;
  check(call.comm_create_errhandler(&ignore_error, &handler), "MPI_Comm_create_errhandler");
  const int code = call.comm_set_errhandler(comm.value, handler);
  call.errhandler_free(&handler);  // the communicator keeps a reference
  check(code, "MPI_Comm_set_errhandler");
}

}  // namespace ropewalk::mpi
