// This file queries, duplicates, splits and frees communicators. Those made here return errors
// instead of aborting.
#include "mpi/collectively.hpp"
#include "mpi/errors_returned.hpp"
#include "mpi/library.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::mpi {
namespace {

Comm ours(Comm comm) {
  if (comm != comm_null()) return_errors(comm);
  return comm;
}

}  // namespace

Comm usable(Comm comm) {
  if (finalized() || comm == comm_world() || comm == comm_self()) {
    require_running("make this call between MPI_Init and MPI_Finalize");
  }
  if (comm != comm_null()) return comm;
  throw Error(ErrorCode::argument,
              "communicator: MPI_COMM_NULL; pass a communicator this rank belongs to");
}

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

bool is_inter(Comm comm) {
  int flag = 0;
  check(library().call.comm_test_inter(comm.value, &flag), "MPI_Comm_test_inter");
  return flag != 0;
}

Comm dup(Comm comm) {
  meet(comm);
  Comm made;
  check(library().call.comm_dup(comm.value, &made.value), "MPI_Comm_dup");
  return ours(made);
}

Comm split(Comm comm, int color, int key) {
  meet(comm);
  Comm made;
  check(library().call.comm_split(comm.value, color, key, &made.value), "MPI_Comm_split");
  return ours(made);
}

bool try_split(Comm comm, int color, int key, Comm& made) {
  meet(comm);
  made = comm_null();
  int code = 0;
  {
    const ErrorsReturned here(comm);
    code = library().call.comm_split(comm.value, color, key, &made.value);
  }
  if (code == 0) made = ours(made);
  if (true_on_all(comm, code == 0)) return true;
  if (code == 0 && made != comm_null()) free(made);
  made = comm_null();
  return false;
}

Comm split_shared(Comm comm) {
  meet(comm);
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

// Files that are not open have the handler MPI_ERRORS_RETURN (MPI 5.0, section 14.7).
Word errors_return() {
  const Library& mpi = library();
  Word handler = mpi.abi.errors_return;
  if (handler != 0) return handler;
  if (mpi.call.file_get_errhandler != nullptr) {
    check(mpi.call.file_get_errhandler(mpi.abi.file_null, &handler), "MPI_File_get_errhandler");
  }
  return handler != 0 ? handler : 0x143;  // as in mpi_abi.h of MPICH
}

// A handler of our own is no solution: MPICH 5.0.2 returns MPI_SUCCESS once such a handler has run.
void return_errors(Comm comm) {
  check(library().call.comm_set_errhandler(comm.value, errors_return()), "MPI_Comm_set_errhandler");
}

}  // namespace ropewalk::mpi
