/* hang start | later: rank 0 waits for a rank that never comes to MPI_Init, or to MPI_Barrier. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((noinline)) static int wait_for_the_other(void) {
  int error = MPI_Barrier(MPI_COMM_WORLD);
  return error + 1; /* no tail call: the name is to stand in the backtrace */
}

int main(int argc, char** argv) {
  const char* number = getenv("OMPI_COMM_WORLD_RANK");
  int late = number != NULL && strcmp(number, "1") == 0;
  if (late && argc > 1 && strcmp(argv[1], "start") == 0) pause();
  MPI_Init(&argc, &argv);
  while (late) pause(); /* which a report ends */
  return wait_for_the_other();
}
