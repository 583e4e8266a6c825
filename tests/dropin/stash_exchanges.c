/* A probe finds a large message behind one of medium size, which MPI has matched by then and whose
 * sender waits for its receive. An exchange receives it, and what it sends is received only after
 * that.
 *
 *   stash_exchanges [multiple] */
#include "check.h"

enum { medium = 100 << 10, large = 1 << 20, rounds = 20 };

static int rank;
static unsigned char *sent, *received, *announced;

static void expect(const unsigned char* data, int bytes, unsigned char with) {
  int same = 1;
  for (int i = 0; i < bytes; ++i) same = same && data[i] == with;
  CHECK(same);
}

static void sender(unsigned char round) {
  MPI_Request first, second;
  memset(sent, round, medium);
  memset(announced, round + 1, large);
  CHECK_CALL(MPI_Isend(sent, medium, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &first));
  CHECK_CALL(MPI_Isend(announced, large, MPI_BYTE, 0, 2, MPI_COMM_WORLD, &second));
  CHECK_CALL(MPI_Wait(&first, MPI_STATUS_IGNORE));
  CHECK_CALL(MPI_Recv(received, medium, MPI_BYTE, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  expect(received, medium, round + 2);
  CHECK_CALL(MPI_Wait(&second, MPI_STATUS_IGNORE));
}

static void receiver(unsigned char round) {
  MPI_Status status;
  int count = 0;
  CHECK_CALL(MPI_Probe(1, 2, MPI_COMM_WORLD, &status));
  CHECK_CALL(MPI_Get_count(&status, MPI_BYTE, &count));
  CHECK(count == large);
  CHECK_CALL(MPI_Recv(announced, large, MPI_BYTE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  expect(announced, large, round + 1);
  memset(sent, round + 2, medium);
  if (round % 2 == 0) {
    CHECK_CALL(MPI_Sendrecv(sent, medium, MPI_BYTE, 1, 3, received, medium, MPI_BYTE, 1, 1,
                            MPI_COMM_WORLD, &status));
    expect(received, medium, round);
  } else {
    CHECK_CALL(MPI_Sendrecv_replace(sent, medium, MPI_BYTE, 1, 3, 1, 1, MPI_COMM_WORLD, &status));
    expect(sent, medium, round);
  }
  CHECK_CALL(MPI_Get_count(&status, MPI_BYTE, &count));
  CHECK(count == medium && status.MPI_SOURCE == 1 && status.MPI_TAG == 1);
}

int main(int argc, char** argv) {
  int provided, wanted = argc > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, wanted, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  sent = malloc(medium);
  received = malloc(medium);
  MPI_Alloc_mem(large, MPI_INFO_NULL, &announced);
  check_warm(MPI_COMM_WORLD);
  for (unsigned char round = 0; round < rounds; ++round) {
    if (rank == 0) {
      receiver(round);
    } else {
      sender(round);
    }
  }
  free(sent);
  free(received);
  MPI_Free_mem(announced);
  return check_finish();
}
