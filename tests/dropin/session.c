/* session ROUNDS: MPI sessions one after the other, with collectives of communicators from groups,
 * without MPI_COMM_WORLD. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if MPI_VERSION >= 4
/* Nothing is served without MPI_COMM_WORLD, and no statistics are printed: the drop-in must be
 * there all the same, and stay out of the way. */
static int is_intercepted(void) {
  Dl_info found;
  void* function = dlsym(RTLD_DEFAULT, "MPI_Allreduce");
  return dladdr(function, &found) != 0 && strstr(found.dli_fname, "libropewalk-mpi") != NULL;
}

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? atoi(argv[1]) : 1;
  int failures = is_intercepted() ? 0 : 1;
  if (failures) fprintf(stderr, "session.c: the drop-in is not in front of MPI\n");
  for (int round = 0; round < rounds; ++round) {
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm;
    int rank, ranks;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "ropewalk.test", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm);
    MPI_Group_free(&group);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    for (int i = 0; i < 50; ++i) {
      double value[1000], sum[1000];
      for (int k = 0; k < 1000; ++k) value[k] = rank + i;
      MPI_Allreduce(value, sum, 1000, MPI_DOUBLE, MPI_SUM, comm);
      failures += sum[999] != ranks * (ranks - 1) / 2 + i * ranks;
      MPI_Bcast(value, 10, MPI_DOUBLE, i % ranks, comm);
      failures += value[9] != i % ranks + i;
      MPI_Barrier(comm);
    }
    MPI_Comm_free(&comm);
    MPI_Session_finalize(&session);
  }
  if (failures) fprintf(stderr, "session.c: %d wrong results\n", failures);
  return failures != 0;
}
#else
int main(void) {
  puts("skipped: this MPI is older than MPI 4 and has no sessions");
  return 77;
}
#endif
