/* An object that is loaded after MPI_Init may receive in a way that messages through memory do not
 * allow. Such a function is found here as that object would find it, so that this program does not
 * import it and promises to understand. From the first such call on, messages are MPI's; where one
 * is under way through memory, the call is an error. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>

#include "check.h"

enum { bytes = 1 << 20 };
typedef int Dup_with_info(MPI_Comm, MPI_Info, MPI_Comm*);

static unsigned char* buffer;

static void expect_filled(unsigned char with) {
  int same = 1;
  for (int i = 0; i < bytes; ++i) same = same && buffer[i] == with;
  CHECK(same);
}

static void pass(int rank, unsigned char with) {
  memset(buffer, rank == 0 ? with : 0, bytes);
  if (rank == 0) MPI_Send(buffer, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
  if (rank == 1) MPI_Recv(buffer, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank == 1) expect_filled(with);
}

/* A message is under way: the call is refused, and the message is still received. */
static void refused(int rank, Dup_with_info* duplicate) {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Comm made;
  memset(buffer, rank == 0 ? 2 : 0, bytes);
  if (rank == 0) MPI_Isend(buffer, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1) {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    CHECK(duplicate(MPI_COMM_WORLD, MPI_INFO_NULL, &made) != MPI_SUCCESS);
    MPI_Recv(buffer, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    expect_filled(2);
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Barrier(MPI_COMM_WORLD);
}

/* Nothing is under way: the call is MPI's, and so are the messages behind it. */
static void allowed(Dup_with_info* duplicate) {
  MPI_Comm made;
  CHECK_CALL(duplicate(MPI_COMM_WORLD, MPI_INFO_NULL, &made));
  MPI_Comm_free(&made);
}

int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  Dup_with_info* duplicate = (Dup_with_info*)dlsym(RTLD_DEFAULT, "MPI_Comm_dup_with_info");
  MPI_Alloc_mem(bytes, MPI_INFO_NULL, &buffer);
  check_warm(MPI_COMM_WORLD);
  pass(rank, 1);
  refused(rank, duplicate);
  allowed(duplicate);
  pass(rank, 3);
  MPI_Free_mem(buffer);
  return check_finish();
}
