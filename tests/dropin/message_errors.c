/* This program sends large messages to receives that are too small, with every call that reports
 * such an error, and to one whose request was freed. It also sends its own message of as many bytes
 * as a descriptor has. */
#include "check.h"

enum { big = 1 << 20, room = 1 << 19, descriptor = 64 };

static int rank;
static unsigned char *out, *in;

static int class_of(int code) {
  int found = -1;
  MPI_Error_class(code, &found);
  return found;
}

static void tell(int source, int destination) {
  int word = 0;
  if (rank == source) MPI_Send(&word, 1, MPI_INT, destination, 9, MPI_COMM_WORLD);
  if (rank == destination) {
    MPI_Recv(&word, 1, MPI_INT, source, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

/* Whatever part of a message arrives, the rest of the buffer must be as it was. */
static void check_rest(void) {
  int untouched = 1;
  for (int i = room; i < big; ++i) untouched = untouched && in[i] == 0xee;
  CHECK(untouched);
}

static void truncated(int form) {
  memset(in, 0xee, big);
  for (int i = 0; i < big; ++i) out[i] = (unsigned char)(i % 251);
  if (rank == 0) {
    CHECK_CALL(MPI_Send(out, big, MPI_BYTE, 1, form, MPI_COMM_WORLD));
    return;
  }
  MPI_Status status, statuses[2];
  MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  int code = 0, flag = 0, index = 0, number = 0, indices[2];
  if (form == 0) {
    code = MPI_Recv(in, room, MPI_BYTE, 0, form, MPI_COMM_WORLD, &status);
    CHECK(class_of(code) == MPI_ERR_TRUNCATE);
    return check_rest();
  }
  CHECK_CALL(MPI_Irecv(in, room, MPI_BYTE, 0, form, MPI_COMM_WORLD, &requests[1]));
  if (form == 1) code = MPI_Wait(&requests[1], &status);
  while (form == 2 && flag == 0) code = MPI_Test(&requests[1], &flag, MPI_STATUS_IGNORE);
  if (form == 3) code = MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
  if (form == 4) code = MPI_Waitall(2, requests, statuses);
  if (form == 5) code = MPI_Waitsome(2, requests, &number, indices, statuses);
  if (form < 4) {
    CHECK(class_of(code) == MPI_ERR_TRUNCATE);
  } else {
    CHECK(class_of(code) == MPI_ERR_IN_STATUS);
    CHECK(class_of(statuses[form == 4].MPI_ERROR) == MPI_ERR_TRUNCATE);
    CHECK(form == 5 || statuses[0].MPI_ERROR == MPI_SUCCESS);
  }
  CHECK(requests[1] == MPI_REQUEST_NULL);
  check_rest();
}

/* The program's own message is as long as a descriptor, but is none. */
static void own_bytes(void) {
  unsigned char bytes[descriptor];
  MPI_Status status;
  int count = 0;
  for (int i = 0; i < descriptor; ++i) bytes[i] = (unsigned char)(3 * i);
  if (rank == 0) CHECK_CALL(MPI_Send(bytes, descriptor, MPI_BYTE, 1, 7, MPI_COMM_WORLD));
  if (rank != 1) return;
  CHECK_CALL(MPI_Recv(in, big, MPI_BYTE, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
  MPI_Get_count(&status, MPI_BYTE, &count);
  CHECK(count == descriptor && status.MPI_TAG == 7 && memcmp(in, bytes, descriptor) == 0);
}

/* A receive goes on though its request was freed. */
static void freed_receive(void) {
  MPI_Request request;
  memset(in, 0, big);
  if (rank == 1) {
    CHECK_CALL(MPI_Irecv(in, big, MPI_BYTE, 0, 6, MPI_COMM_WORLD, &request));
    CHECK_CALL(MPI_Request_free(&request));
    CHECK(request == MPI_REQUEST_NULL);
  }
  tell(1, 0);
  if (rank == 0) {
    memset(out, 6, big);
    CHECK_CALL(MPI_Ssend(out, big, MPI_BYTE, 1, 6, MPI_COMM_WORLD));
  }
  for (int i = 0; i < 3; ++i) {
    tell(0, 1);
    tell(1, 0);
  }
  CHECK(rank != 1 || (in[0] == 6 && in[big - 1] == 6));
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Alloc_mem(big, MPI_INFO_NULL, &out);
  MPI_Alloc_mem(big, MPI_INFO_NULL, &in);
  check_warm(MPI_COMM_WORLD);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  for (int form = 0; form < 6 && rank < 2; ++form) truncated(form);
  own_bytes();
  freed_receive();
  MPI_Free_mem(out);
  MPI_Free_mem(in);
  return check_finish();
}
