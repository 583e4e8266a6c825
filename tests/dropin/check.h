/* What the plain MPI programs of this folder share: they know MPI alone, and are run with the
 * drop-in preloaded. A failed check says where, and the program's status is then 1 on all ranks. */
#ifndef ROPEWALK_TESTS_DROPIN_CHECK_H
#define ROPEWALK_TESTS_DROPIN_CHECK_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int check_failures;

#define CHECK(condition)                                                      \
  do {                                                                        \
    if (!(condition) && ++check_failures <= 20) {                             \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
    }                                                                         \
  } while (0)

#define CHECK_CALL(call) CHECK((call) == MPI_SUCCESS)

/* As many collectives as have the drop-in serve a communicator from then on. */
static inline void check_warm(MPI_Comm comm) {
  int one = 1, sum = 0, ranks = 0;
  MPI_Comm_size(comm, &ranks);
  for (int i = 0; i < 4; ++i) {
    CHECK_CALL(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm));
    CHECK(sum == ranks);
  }
}

/* Ends the program with a common status. */
static inline int check_finish(void) {
  int all = 0;
  PMPI_Allreduce(&check_failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  return all != 0;
}

#endif
