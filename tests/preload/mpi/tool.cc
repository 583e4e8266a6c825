// This is a tool as others write them: it takes MPI_Allreduce for itself and counts.
#include <cstdio>

#include "the_mpi.hpp"

namespace {
int calls = 0;
}  // namespace

extern "C" {
__attribute__((visibility("default"))) int MPI_Allreduce(const void* send, void* receive, int count,
                                                         MPI_Datatype type, MPI_Op op,
                                                         MPI_Comm comm) {
  ++calls;
  return PMPI_Allreduce(send, receive, count, type, op, comm);
}

__attribute__((visibility("default"))) int test_tool_calls() { return calls; }
}
