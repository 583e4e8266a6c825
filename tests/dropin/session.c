/* MPI sessions: collectives of communicators from groups, without MPI_COMM_WORLD. */
#include <mpi.h>
#include <stdio.h>

#if MPI_VERSION >= 4
int main(void) {
  int failures = 0;
  for (int round = 0; round < 2; ++round) {
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
int main(void) { return 0; }
#endif
