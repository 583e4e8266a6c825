/* Receives with room for more elements than an int counts, whose messages go through memory, and
 * sends of that many elements. Nobody has all that memory: what is not received is not touched, and
 * the large sends have elements of no bytes. */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"
#include "count_forms.h"

enum { bytes = 1 << 20 };
#ifdef OPEN_MPI /* has no function for more */
static const long long large = bytes + 4096;
#else
static const long long large = (1LL << 31) + 4096;
#endif

static unsigned char *data, *room;
static int rank, other;

static void fill(unsigned char with) {
  memset(data, with + rank, bytes);
  memset(room, 0, bytes);
}
static void expect(unsigned char with, const unsigned char* received, MPI_Status* status) {
  MPI_Count count = -1;
  int same = 1;
  CHECK_CALL(MPI_Get_elements_x(status, MPI_BYTE, &count));
  CHECK(count == bytes && status->MPI_SOURCE == other && status->MPI_TAG == 7);
  for (int i = 0; i < bytes; ++i) same = same && received[i] == (unsigned char)(with + other);
  CHECK(same);
}

static void send(void) { CHECK_CALL(MPI_Send(data, bytes, MPI_BYTE, other, 7, MPI_COMM_WORLD)); }

/* More than the MPI has a function for, which raises an error. */
static void beyond(void) {
#ifdef OPEN_MPI
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  CHECK(MPI_Recv_c(room, 1LL << 31, MPI_BYTE, other, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE) != 0);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
#endif
}

static void receives(void) {
  MPI_Status status;
  MPI_Request request, sent;
  MPI_Message message;
  for (unsigned char turn = 0; turn < 6; ++turn) {
    fill(turn);
    if (rank == 0) send();
    if (turn == 0) {
      CHECK_CALL(MPI_Recv_c(room, large, MPI_BYTE, other, 7, MPI_COMM_WORLD, &status));
    } else if (turn == 1) {
      CHECK_CALL(MPI_Irecv_c(room, large, MPI_BYTE, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &request));
      CHECK_CALL(MPI_Wait(&request, &status));
    } else if (turn == 2) {
      CHECK_CALL(MPI_Mprobe(other, MPI_ANY_TAG, MPI_COMM_WORLD, &message, &status));
      CHECK_CALL(MPI_Mrecv_c(room, large, MPI_BYTE, &message, &status));
    } else if (turn == 3) {
      CHECK_CALL(MPI_Mprobe(other, MPI_ANY_TAG, MPI_COMM_WORLD, &message, &status));
      CHECK_CALL(MPI_Imrecv_c(room, large, MPI_BYTE, &message, &request));
      CHECK_CALL(MPI_Wait(&request, &status));
    } else if (turn == 4) { /* what a probe has seen, by a receive of its own */
      CHECK_CALL(MPI_Probe(other, 7, MPI_COMM_WORLD, &status));
      CHECK_CALL(MPI_Recv_c(room, large, MPI_BYTE, other, 7, MPI_COMM_WORLD, &status));
    } else {
      CHECK_CALL(MPI_Recv_init_c(room, large, MPI_BYTE, other, 7, MPI_COMM_WORLD, &request));
      CHECK_CALL(MPI_Start(&request));
      CHECK_CALL(MPI_Wait(&request, &status));
      CHECK_CALL(MPI_Request_free(&request));
    }
    expect(turn, room, &status);
    if (rank == 1) send();
  }
  fill(9);
  CHECK_CALL(MPI_Sendrecv_c(data, bytes, MPI_BYTE, other, 7, room, large, MPI_BYTE, other, 7,
                            MPI_COMM_WORLD, &status));
  expect(9, room, &status);
  fill(10);
  CHECK_CALL(MPI_Isendrecv_c(data, bytes, MPI_BYTE, other, 7, room, large, MPI_BYTE, other, 7,
                             MPI_COMM_WORLD, &request));
  CHECK_CALL(MPI_Wait(&request, &status));
  expect(10, room, &status);
  /* A message that is too long is told of by either form. */
  fill(11);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  CHECK_CALL(MPI_Isend_c(data, bytes, MPI_BYTE, other, 7, MPI_COMM_WORLD, &sent));
  int code = MPI_Recv_c(room, bytes / 2, MPI_BYTE, other, 7, MPI_COMM_WORLD, &status), class = 0;
  MPI_Error_class(code, &class);
  CHECK(class == MPI_ERR_TRUNCATE);
  CHECK_CALL(MPI_Wait(&sent, MPI_STATUS_IGNORE));
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

/* Memory that is the same `bytes` again and again, so that nobody needs 2 GiB. */
static unsigned char* repeated(int with) {
  const int file = memfd_create("repeated", 0);
  unsigned char* all = mmap(NULL, (size_t)large, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(file >= 0 && ftruncate(file, bytes) == 0 && all != MAP_FAILED);
  for (long long at = 0; at < large; at += bytes) {
    const size_t length = large - at < bytes ? (size_t)(large - at) : (size_t)bytes;
    CHECK(mmap(all + at, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) !=
          MAP_FAILED);
  }
  close(file);
  memset(all, with, bytes);
  return all;
}

/* A message of more bytes than an int counts. */
static void long_message(void) {
  MPI_Request request;
  MPI_Status status;
  MPI_Count count = -1;
  unsigned char* all = repeated(rank == 0 ? 5 : 0);
  if (rank == 0) {
    CHECK_CALL(MPI_Send_c(all, large, MPI_BYTE, 1, 7, MPI_COMM_WORLD));
  } else {
    CHECK_CALL(MPI_Recv_init_c(all, large, MPI_BYTE, other, 7, MPI_COMM_WORLD, &request));
    CHECK_CALL(MPI_Start(&request));
    CHECK_CALL(MPI_Wait(&request, &status));
    CHECK_CALL(MPI_Request_free(&request));
    CHECK_CALL(MPI_Get_elements_x(&status, MPI_BYTE, &count));
    CHECK(count == large);
    CHECK(all[0] == 5 && all[large - 1] == 5);
  }
  munmap(all, (size_t)large);
}

/* Many elements of no bytes. */
static void sends(void) {
  MPI_Datatype empty;
  MPI_Request request;
  MPI_Status status;
  MPI_Count count = -1;
  CHECK_CALL(MPI_Type_contiguous(0, MPI_BYTE, &empty));
  CHECK_CALL(MPI_Type_commit(&empty));
  for (int turn = 0; turn < 3; ++turn) {
    CHECK_CALL(MPI_Irecv(room, 1, MPI_BYTE, other, 7, MPI_COMM_WORLD, &request));
    if (turn == 0) {
      CHECK_CALL(MPI_Send_c(data, large, empty, other, 7, MPI_COMM_WORLD));
    } else if (turn == 1) {
      MPI_Request sent;
      CHECK_CALL(MPI_Isend_c(data, large, empty, other, 7, MPI_COMM_WORLD, &sent));
      CHECK_CALL(MPI_Wait(&sent, MPI_STATUS_IGNORE));
    } else {
      CHECK_CALL(MPI_Sendrecv_c(data, large, empty, other, 7, NULL, 0, MPI_BYTE, MPI_PROC_NULL, 7,
                                MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
    CHECK_CALL(MPI_Wait(&request, &status));
    CHECK_CALL(MPI_Get_elements_x(&status, MPI_BYTE, &count));
    CHECK(count == 0);
  }
  CHECK_CALL(
      MPI_Sendrecv_replace_c(room, large, empty, other, 7, other, 7, MPI_COMM_WORLD, &status));
  CHECK(status.MPI_SOURCE == other && status.MPI_TAG == 7);
  CHECK_CALL(MPI_Type_free(&empty));
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  other = 1 - rank;
  MPI_Alloc_mem(bytes, MPI_INFO_NULL, &data);
  room = mmap(NULL, (size_t)large, PROT_READ | PROT_WRITE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CHECK(room != MAP_FAILED);
  check_warm(MPI_COMM_WORLD);
  beyond();
  receives();
  long_message();
  sends();
  munmap(room, (size_t)large);
  MPI_Free_mem(data);
  return check_finish();
}
