/* Collectives without end, until one of the ranks is killed: kills.py. Prints its process ids.
 *
 *   victim [TOGETHER [ITERATIONS]]   on duplicates as well; ends by itself after so many */
#include <unistd.h>

#include "check.h"

int main(int argc, char** argv) {
  enum { elements = 100000 };
  int rank, ranks, together = argc > 1 ? atoi(argv[1]) : 1;
  double *in = malloc(sizeof(double) * elements), *out = malloc(sizeof(double) * elements * 8);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int i = 0; i < elements; ++i) in[i] = rank;
  printf("rank %d is %d\n", rank, (int)getpid());
  fflush(stdout);
  unsigned iterations = argc > 2 ? (unsigned)atoi(argv[2]) : 0;
  for (unsigned i = 0; iterations == 0 || i < iterations; ++i) {
    MPI_Comm copy = MPI_COMM_WORLD;
    if (together && i % 64 == 0) MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    int count = i % 3 ? 1 + (int)(i % 64) : elements / 8;
    MPI_Allreduce(in, out, count, MPI_DOUBLE, MPI_SUM, copy);
    if (i % 5 == 0) MPI_Bcast(out, count, MPI_DOUBLE, (int)i % ranks, copy);
    if (i % 7 == 0) MPI_Alltoall(in, 16, MPI_DOUBLE, out, 16, MPI_DOUBLE, copy);
    if (i % 11 == 0) MPI_Barrier(copy);
    if (copy != MPI_COMM_WORLD) MPI_Comm_free(&copy);
  }
  return check_finish();
}
