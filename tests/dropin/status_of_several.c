/* The functions of MPI 4.1 that look at several requests, which a program finds in the drop-in
 * whatever the MPI behind it has. */
#define _GNU_SOURCE
#include "check.h"

#ifdef OPEN_MPI /* 5.0 has none of these */
#pragma GCC visibility push(default)
int MPI_Request_get_status_all(int, MPI_Request[], int*, MPI_Status*) __attribute__((weak));
int MPI_Request_get_status_any(int, MPI_Request[], int*, int*, MPI_Status*) __attribute__((weak));
int MPI_Request_get_status_some(int, MPI_Request[], int*, int[], MPI_Status*) __attribute__((weak));
#pragma GCC visibility pop
#endif

enum { number = 3 };

static int rank, values[number];
static MPI_Request requests[number];

static int tag_of(const MPI_Status* status) { return status->MPI_TAG; }

static void look_at_none(void) {
  int index = 7, flag = 0, some = 7, indices[number];
  MPI_Request none[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  MPI_Status statuses[number];
  memset(statuses, 0x11, sizeof statuses);
  CHECK_CALL(MPI_Request_get_status_any(2, none, &index, &flag, statuses));
  CHECK(flag && index == MPI_UNDEFINED);
  CHECK(statuses[0].MPI_SOURCE == MPI_ANY_SOURCE && statuses[0].MPI_TAG == MPI_ANY_TAG);
#ifdef OPEN_MPI /* MPICH's leaves the error as it is */
  CHECK(statuses[0].MPI_ERROR == MPI_SUCCESS);
#endif
  CHECK_CALL(MPI_Request_get_status_some(2, none, &some, indices, statuses));
  CHECK(some == MPI_UNDEFINED);
  CHECK_CALL(MPI_Request_get_status_all(2, none, &flag, statuses));
  CHECK(flag);
}

/* Nothing has been sent yet. */
static void look_too_early(void) {
  int index = 7, flag = 1, some = 7, indices[number];
  MPI_Status statuses[number];
  CHECK_CALL(MPI_Request_get_status_any(number, requests, &index, &flag, statuses));
  CHECK(!flag);
  CHECK_CALL(MPI_Request_get_status_some(number, requests, &some, indices, statuses));
  CHECK(some == 0);
  CHECK_CALL(MPI_Request_get_status_all(number, requests, &flag, MPI_STATUSES_IGNORE));
  CHECK(!flag);
}

/* The second receive is complete, and is seen to be again and again. */
static void look_at_second(void) {
  int index = 7, flag = 0, some = 0, indices[number];
  MPI_Status statuses[number];
  while (!flag) {
    CHECK_CALL(MPI_Request_get_status_any(number, requests, &index, &flag, statuses));
  }
  CHECK(index == 1 && tag_of(statuses) == 1);
  CHECK_CALL(MPI_Request_get_status_some(number, requests, &some, indices, statuses));
  CHECK(some == 1 && indices[0] == 1 && tag_of(statuses) == 1);
  CHECK_CALL(MPI_Request_get_status_any(number, requests, &index, &flag, MPI_STATUS_IGNORE));
  CHECK(flag && index == 1);
}

static void look_at_all(void) {
  int flag = 0, some = 0, indices[number];
  MPI_Status statuses[number];
  while (!flag) CHECK_CALL(MPI_Request_get_status_all(number, requests, &flag, statuses));
  for (int i = 0; i < number; ++i) CHECK(tag_of(&statuses[i]) == i);
  CHECK_CALL(MPI_Request_get_status_some(number, requests, &some, indices, statuses));
  CHECK(some == number);
  for (int i = 0; i < number; ++i) CHECK(indices[i] == i && tag_of(&statuses[i]) == i);
}

static void send_to(int other, int tag) {
  const int value = 10 + tag;
  CHECK_CALL(MPI_Send(&value, 1, MPI_INT, other, tag, MPI_COMM_WORLD));
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int other = 1 - rank;
  check_warm(MPI_COMM_WORLD);
  for (int i = 0; i < number; ++i) {
    CHECK_CALL(MPI_Irecv(&values[i], 1, MPI_INT, other, i, MPI_COMM_WORLD, &requests[i]));
  }
  look_at_none();
  look_too_early();
  MPI_Barrier(MPI_COMM_WORLD);
  send_to(other, 1);
  look_at_second();
  MPI_Barrier(MPI_COMM_WORLD);
  send_to(other, 0);
  send_to(other, 2);
  look_at_all();
  CHECK_CALL(MPI_Waitall(number, requests, MPI_STATUSES_IGNORE));
  for (int i = 0; i < number; ++i) CHECK(values[i] == 10 + i);
  return check_finish();
}
