/* A profiling tool that takes one Fortran name for itself, and counts. */
#include <stdio.h>

static long calls;

extern void pmpi_allreduce_(void*, void*, int*, int*, int*, int*, int*);

void mpi_allreduce_(void* send, void* receive, int* count, int* type, int* op, int* comm,
                    int* error) {
  ++calls;
  pmpi_allreduce_(send, receive, count, type, op, comm, error);
}

__attribute__((destructor)) static void report(void) {
  if (calls > 0) fprintf(stderr, "tool: %ld calls of MPI_Allreduce\n", calls);
}
