/* Persistent receives and MPI_Isendrecv, as programs use them at the edges of the standard: started
 * together with sends, from anybody, from nobody, after a probe, cancelled, freed while active, and
 * among other requests in calls that complete several. Each check holds for every MPI, with or
 * without the drop-in.
 *
 *   request_edges [BYTES]  the size of large messages */
#include "check.h"

static int rank, ranks, large = 1 << 20;

static int right(void) { return (rank + 1) % ranks; }
static int left(void) { return (rank + ranks - 1) % ranks; }
static char* buffer(int value) {
  char* made = NULL;
  MPI_Alloc_mem(large, MPI_INFO_NULL, &made);
  memset(made, value, (size_t)large);
  return made;
}
static int is_filled(const char* data, int value) {
  return data[0] == (char)value && memcmp(data, data + 1, (size_t)large - 1) == 0;
}
static int bytes_of(const MPI_Status* status) {
  int bytes = -1;
  MPI_Get_count(status, MPI_BYTE, &bytes);
  return bytes;
}

/* ---- sends and receives that are started in one call, completed by one after the other */
static void finish_by_turns(int round, MPI_Request* all, MPI_Status* statuses) {
  int indices[4], done = 0;
  if (round % 3 == 0) CHECK_CALL(MPI_Waitall(4, all, statuses));
  while (round % 3 == 1 && done < 4) {
    MPI_Status status;
    CHECK_CALL(MPI_Waitany(4, all, &indices[0], &status));
    if (indices[0] == MPI_UNDEFINED) break;
    statuses[indices[0]] = status;
    ++done;
  }
  while (round % 3 == 2 && done < 4) {
    MPI_Status some[4];
    int number = 0;
    CHECK_CALL(MPI_Waitsome(4, all, &number, indices, some));
    if (number == MPI_UNDEFINED) break;
    for (int i = 0; i < number; ++i) statuses[indices[i]] = some[i];
    done += number;
  }
  CHECK(round % 3 == 0 || done == 4);
}

static void check_startall(void) {
  char *out = buffer(0), *in = buffer(0);
  int small_out = 0, small_in = -1;
  MPI_Request all[4];
  MPI_Status statuses[4];
  MPI_Recv_init(in, large, MPI_BYTE, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &all[0]);
  MPI_Send_init(out, large, MPI_BYTE, right(), 7, MPI_COMM_WORLD, &all[1]);
  MPI_Recv_init(&small_in, 1, MPI_INT, left(), 8, MPI_COMM_WORLD, &all[2]);
  MPI_Send_init(&small_out, 1, MPI_INT, right(), 8, MPI_COMM_WORLD, &all[3]);
  for (int round = 0; round < 9; ++round) {
    memset(out, 10 * rank + round, (size_t)large);
    small_out = 100 * rank + round;
    CHECK_CALL(MPI_Startall(4, all));
    finish_by_turns(round, all, statuses);
    CHECK(is_filled(in, 10 * left() + round) && small_in == 100 * left() + round);
    CHECK(statuses[0].MPI_SOURCE == left() && statuses[0].MPI_TAG == 7);
    CHECK(bytes_of(&statuses[0]) == large && bytes_of(&statuses[2]) == (int)sizeof(int));
    MPI_Barrier(MPI_COMM_WORLD); /* no message of the next round is matched by this one */
  }
  for (int i = 0; i < 4; ++i) {
    CHECK(all[i] != MPI_REQUEST_NULL);
    CHECK_CALL(MPI_Request_free(&all[i]));
  }
  MPI_Free_mem(out);
  MPI_Free_mem(in);
}

/* ---- the message of a start has been probed before; sends are of every kind */
static void check_probed(void) {
  char *out = buffer(rank), *in = buffer(99);
  MPI_Request receiving, sending;
  MPI_Status status;
  MPI_Recv_init(in, large, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &receiving);
  for (int round = 0; round < 4; ++round) {
    memset(in, 99, (size_t)large);
    CHECK_CALL(MPI_Isend(out, large, MPI_BYTE, right(), round, MPI_COMM_WORLD, &sending));
    CHECK_CALL(MPI_Probe(left(), round, MPI_COMM_WORLD, &status));
    CHECK(bytes_of(&status) == large && status.MPI_TAG == round);
    CHECK_CALL(MPI_Start(&receiving));
    if (round == 3) { /* the receive goes on, and nobody asks for it any more */
      CHECK_CALL(MPI_Request_free(&receiving));
      CHECK(receiving == MPI_REQUEST_NULL);
    } else {
      CHECK_CALL(MPI_Wait(&receiving, &status));
      CHECK(status.MPI_SOURCE == left() && status.MPI_TAG == round && bytes_of(&status) == large);
      CHECK(is_filled(in, left()));
    }
    CHECK_CALL(MPI_Wait(&sending, MPI_STATUS_IGNORE));
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Sendrecv(NULL, 0, MPI_BYTE, right(), 20, NULL, 0, MPI_BYTE, left(), 20, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  MPI_Free_mem(out); /* in may be written to until MPI_Finalize */
}

/* ---- a receive that is cancelled can be started again */
static void check_cancelled(void) {
  char *out = buffer(rank + 40), *in = buffer(0);
  MPI_Request receiving;
  MPI_Status status;
  int cancelled = 0;
  MPI_Recv_init(in, large, MPI_BYTE, left(), 30, MPI_COMM_WORLD, &receiving);
  for (int round = 0; round < 3; ++round) {
    CHECK_CALL(MPI_Start(&receiving));
    CHECK_CALL(MPI_Cancel(&receiving));
    CHECK_CALL(MPI_Wait(&receiving, &status));
    CHECK_CALL(MPI_Test_cancelled(&status, &cancelled));
    CHECK(cancelled);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_CALL(MPI_Start(&receiving));
    CHECK_CALL(MPI_Send(out, large, MPI_BYTE, right(), 30, MPI_COMM_WORLD));
    CHECK_CALL(MPI_Wait(&receiving, &status));
    CHECK_CALL(MPI_Test_cancelled(&status, &cancelled));
    CHECK(!cancelled && is_filled(in, left() + 40) && bytes_of(&status) == large);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  CHECK_CALL(MPI_Request_free(&receiving));
  MPI_Free_mem(out);
  MPI_Free_mem(in);
}

/* ---- what is complete is told of, whatever else is */
static void check_some(void) {
  enum { times = 12 };
  char *out = buffer(rank + 60), *in = buffer(0);
  int word = rank, got = -1, complete = 0, number = 0, indices[2];
  MPI_Request all[2], sending[times + 1];
  MPI_Recv_init(in, large, MPI_BYTE, left(), 50, MPI_COMM_WORLD, &all[0]);
  for (int i = 0; i < times; ++i) {
    MPI_Isend(out, large, MPI_BYTE, right(), 50, MPI_COMM_WORLD, &sending[i]);
  }
  MPI_Isend(&word, 1, MPI_INT, right(), 51, MPI_COMM_WORLD, &sending[times]);
  MPI_Start(&all[0]);
  MPI_Irecv(&got, 1, MPI_INT, left(), 51, MPI_COMM_WORLD, &all[1]);
  while (!complete) MPI_Request_get_status(all[1], &complete, MPI_STATUS_IGNORE);
  CHECK_CALL(MPI_Testsome(2, all, &number, indices, MPI_STATUSES_IGNORE));
  CHECK(number >= 1 && (indices[0] == 1 || (number == 2 && indices[1] == 1)));
  CHECK(got == left() && all[1] == MPI_REQUEST_NULL);
  const int first = number == 2;
  if (!first) CHECK_CALL(MPI_Wait(&all[0], MPI_STATUS_IGNORE));
  CHECK(is_filled(in, left() + 60));
  for (int i = 1; i < times; ++i) {
    memset(in, 0, (size_t)large);
    CHECK_CALL(MPI_Start(&all[0]));
    CHECK_CALL(MPI_Wait(&all[0], MPI_STATUS_IGNORE));
    CHECK(is_filled(in, left() + 60));
  }
  CHECK_CALL(MPI_Waitall(times + 1, sending, MPI_STATUSES_IGNORE));
  CHECK_CALL(MPI_Request_free(&all[0]));
  MPI_Free_mem(out);
  MPI_Free_mem(in);
}

/* ---- receives from nobody, and exchanges with nobody on one side */
static void check_nobody(void) {
  char *out = buffer(rank + 80), *in = buffer(3);
  MPI_Request request;
  MPI_Status status;
  MPI_Recv_init(in, large, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &request);
  for (int round = 0; round < 2; ++round) {
    CHECK_CALL(MPI_Start(&request));
    CHECK_CALL(MPI_Wait(&request, &status));
    CHECK(bytes_of(&status) == 0 && is_filled(in, 3));
  }
  CHECK_CALL(MPI_Request_free(&request));
#if MPI_VERSION >= 4
  const int last = rank == ranks - 1 ? MPI_PROC_NULL : rank + 1;
  const int before = rank == 0 ? MPI_PROC_NULL : rank - 1;
  CHECK_CALL(MPI_Isendrecv(out, large, MPI_BYTE, last, 1, in, large, MPI_BYTE, before, 1,
                           MPI_COMM_WORLD, &request));
  CHECK_CALL(MPI_Wait(&request, MPI_STATUS_IGNORE));
  CHECK(is_filled(in, rank == 0 ? 3 : rank - 1 + 80));
  CHECK_CALL(
      MPI_Isendrecv_replace(out, large, MPI_BYTE, last, 1, before, 1, MPI_COMM_WORLD, &request));
  CHECK_CALL(MPI_Wait(&request, MPI_STATUS_IGNORE));
  CHECK(is_filled(out, rank == 0 ? 80 : rank - 1 + 80));
#endif
  MPI_Free_mem(out);
  MPI_Free_mem(in);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc > 1) large = atoi(argv[1]);
  check_warm(MPI_COMM_WORLD);
  check_startall();
  check_some();
  check_cancelled();
  check_nobody();
  check_probed();
  return check_finish();
}
