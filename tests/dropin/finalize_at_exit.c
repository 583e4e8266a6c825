/* MPI_Finalize is called by the destructor of a library that the program is linked to, which runs
 * after those of preloaded libraries. Messages of the drop-in are under way, or set up, until
 * then. */
#include <stdlib.h>

#include "check.h"

void finalize_at_exit(void);

int main(int argc, char** argv) {
  enum { bytes = 1 << 20, rounds = 20 };
  finalize_at_exit();
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < 4; ++i) MPI_Barrier(MPI_COMM_WORLD);
  char* data = calloc(bytes, 1);
  MPI_Request request = MPI_REQUEST_NULL;
  for (int i = 0; i < rounds; ++i) {
    if (rank == 0) {
      MPI_Isend(data, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request);
      MPI_Request_free(&request);
    } else if (rank == 1) {
      MPI_Recv(data, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
  }
  if (rank == 0) MPI_Send_init(data, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request);
  return 0;
}
