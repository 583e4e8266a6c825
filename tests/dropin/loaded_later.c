/* An object that is loaded after MPI_Init may receive in a way that messages through memory do not
 * allow. Such a function is found here as that object would find it, so that this program does not
 * import it and promises to understand. From the first such call on, messages are MPI's; where one
 * is under way through memory, the call is an error. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>

#include "check.h"

enum { bytes = 1 << 20 };
typedef int Recv_init(void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);

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
static void refused(int rank, Recv_init* prepare) {
  MPI_Request request = MPI_REQUEST_NULL;
  char small = 0;
  memset(buffer, rank == 0 ? 2 : 0, bytes);
  if (rank == 0) MPI_Isend(buffer, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1) {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    CHECK(prepare(&small, 1, MPI_CHAR, 0, 9, MPI_COMM_WORLD, &request) != MPI_SUCCESS);
    MPI_Recv(buffer, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    expect_filled(2);
    request = MPI_REQUEST_NULL;
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Barrier(MPI_COMM_WORLD);
}

/* Nothing is under way: the call is MPI's, and so are the messages behind it. */
static void allowed(int rank, Recv_init* prepare) {
  MPI_Request request = MPI_REQUEST_NULL;
  char small = rank == 0 ? 5 : 0;
  if (rank == 1) {
    CHECK_CALL(prepare(&small, 1, MPI_CHAR, 0, 9, MPI_COMM_WORLD, &request));
    MPI_Start(&request);
  }
  if (rank == 0) MPI_Send(&small, 1, MPI_CHAR, 1, 9, MPI_COMM_WORLD);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (rank <= 1) CHECK(small == 5);
  if (rank == 1) MPI_Request_free(&request);
}

int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  Recv_init* prepare = (Recv_init*)dlsym(RTLD_DEFAULT, "MPI_Recv_init");
  MPI_Alloc_mem(bytes, MPI_INFO_NULL, &buffer);
  check_warm(MPI_COMM_WORLD);
  pass(rank, 1);
  refused(rank, prepare);
  allowed(rank, prepare);
  pass(rank, 3);
  MPI_Free_mem(buffer);
  return check_finish();
}
