// Compares nonblocking collectives of an unchanged program, served by the drop-in (MPI_X) and by
// MPI alone (PMPI_X). Several are under way at once, between blocking ones and messages. Argument 1
// is the number of cases.
#ifdef ROPEWALK_TEST_ABI
#include <mpi_abi.h>
#else
#include <mpi.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { most = 60000, under_way = 4 };

static unsigned long long state = 12345;
static unsigned below(unsigned limit) {
  state = state * 6364136223846793005ULL + 1442695040888963407ULL;
  return (unsigned)(state >> 33) % limit;
}

static int ranks, rank, failures;
static double *sent[under_way], *got[under_way], *expected[under_way];

static void start(int kind, int k, int count, int root, MPI_Request* ours, MPI_Request* theirs) {
  const MPI_Comm world = MPI_COMM_WORLD;
  MPI_Datatype pair;
  switch (kind) {
    case 0:
      MPI_Iallreduce(sent[k], got[k], count, MPI_DOUBLE, MPI_SUM, world, ours);
      PMPI_Iallreduce(sent[k], expected[k], count, MPI_DOUBLE, MPI_SUM, world, theirs);
      break;
    case 1:
      MPI_Ireduce(sent[k], got[k], count, MPI_DOUBLE, MPI_MAX, root, world, ours);
      PMPI_Ireduce(sent[k], expected[k], count, MPI_DOUBLE, MPI_MAX, root, world, theirs);
      break;
    case 2:  // in place, of a type that is freed at once
      memcpy(got[k], sent[k], sizeof(double) * most);
      memcpy(expected[k], sent[k], sizeof(double) * most);
      MPI_Type_vector(2, 1, 2, MPI_DOUBLE, &pair);
      MPI_Type_commit(&pair);
      MPI_Ibcast(got[k], count / 3, pair, root, world, ours);
      PMPI_Ibcast(expected[k], count / 3, pair, root, world, theirs);
      MPI_Type_free(&pair);
      break;
    case 3:
      MPI_Iallgather(sent[k], count / ranks, MPI_DOUBLE, got[k], count / ranks, MPI_DOUBLE, world,
                     ours);
      PMPI_Iallgather(sent[k], count / ranks, MPI_DOUBLE, expected[k], count / ranks, MPI_DOUBLE,
                      world, theirs);
      break;
    case 4:
      MPI_Ialltoall(sent[k], count / ranks, MPI_DOUBLE, got[k], count / ranks, MPI_DOUBLE, world,
                    ours);
      PMPI_Ialltoall(sent[k], count / ranks, MPI_DOUBLE, expected[k], count / ranks, MPI_DOUBLE,
                     world, theirs);
      break;
    default:
      MPI_Ireduce_scatter_block(sent[k], got[k], count / ranks, MPI_DOUBLE, MPI_SUM, world, ours);
      PMPI_Ireduce_scatter_block(sent[k], expected[k], count / ranks, MPI_DOUBLE, MPI_SUM, world,
                                 theirs);
  }
}

int main(int argc, char** argv) {
  int level;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int cases = argc > 1 ? atoi(argv[1]) : 50;
  for (int k = 0; k < under_way; ++k) {
    sent[k] = malloc(sizeof(double) * most);
    got[k] = malloc(sizeof(double) * most);
    expected[k] = malloc(sizeof(double) * most);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int test = 0; test < cases; ++test) {
    MPI_Request requests[2 * under_way];
    int kinds[under_way];
    const int number = 1 + (int)below(under_way);
    for (int k = 0; k < number; ++k) {
      for (int i = 0; i < most; ++i) sent[k][i] = (test + i * (rank + 1) + k) % 1000;
      for (int i = 0; i < most; ++i) got[k][i] = expected[k][i] = -1;
      kinds[k] = (int)below(6);
      const int count = (int)(below(2) ? below(most) : below(300));
      start(kinds[k], k, count, (int)below((unsigned)ranks), requests + 2 * k,
            requests + 2 * k + 1);
    }
    int sum = 0, one = 1, from = -1;
    if (below(2)) {
      MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % ranks, 7, &from, 1, MPI_INT, MPI_ANY_SOURCE, 7,
                   MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      failures += from != (rank + ranks - 1) % ranks;
    }
    if (below(2)) {
      MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
      failures += sum != ranks;
    }
    switch (below(3)) {
      case 0:
        MPI_Waitall(2 * number, requests, MPI_STATUSES_IGNORE);
        break;
      case 1:
        for (int k = 2 * number - 1; k >= 0; --k) MPI_Wait(requests + k, MPI_STATUS_IGNORE);
        break;
      default:
        for (int done = 0; !done;) MPI_Testall(2 * number, requests, &done, MPI_STATUSES_IGNORE);
    }
    for (int k = 0; k < number; ++k) {
      if (memcmp(got[k], expected[k], sizeof(double) * most) == 0) continue;
      ++failures;
      fprintf(stderr, "rank %d, case %d: nonblocking collective %d differs\n", rank, test,
              kinds[k]);
    }
  }
  MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("nonblocking: %d cases, %d failures\n", cases, failures);
  MPI_Finalize();
  return failures != 0;
}
