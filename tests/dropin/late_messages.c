/* Large messages at the end of what they need: a datatype that is freed while a receive waits, a
 * communicator that is freed before its receive fails, messages that a callback receives from a
 * communicator that is being freed, or from MPI_COMM_WORLD in MPI_Finalize, where it calls a
 * collective as well; a send that is freed before its communicator is disconnected. And errors, of
 * which the program hears once, and only where there is one.
 *
 *   late_messages [multiple]: with threads. Two ranks. */
#include <pthread.h>
#include <unistd.h>

#include "check.h"

enum { big = 1 << 20, room = 1 << 19, untouched = 4711 };

static int rank, errors;
static unsigned char *out, *in;

static void fill(void) {
  for (int i = 0; i < big; ++i) out[i] = (unsigned char)(i % 249);
  memset(in, 0xee, big);
}
static void check_all(void) {
  int good = 1;
  for (int i = 0; i < big; ++i) good = good && in[i] == i % 249;
  CHECK(good);
}
static int class_of(int code) {
  int found = -1;
  MPI_Error_class(code, &found);
  return found;
}

/* MPI changes the errors of statuses where a call says that some are errors, and nowhere else. */
static void errors_untouched(int test) {
  MPI_Status statuses[2];
  MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  int number = 0, indices[2];
  fill();
  if (rank == 0) CHECK_CALL(MPI_Send(out, big, MPI_BYTE, 1, 1, MPI_COMM_WORLD));
  if (rank == 0) return;
  for (int i = 0; i < 2; ++i) statuses[i].MPI_ERROR = untouched;
  CHECK_CALL(MPI_Irecv(in, big, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &requests[1]));
  if (test) {
    while (number == 0) CHECK_CALL(MPI_Testsome(2, requests, &number, indices, statuses));
  } else {
    CHECK_CALL(MPI_Waitsome(2, requests, &number, indices, statuses));
  }
  CHECK(number == 1 && indices[0] == 1);
#ifndef OPEN_MPI /* which sets them in any case */
  CHECK(statuses[0].MPI_ERROR == untouched && statuses[1].MPI_ERROR == untouched);
#endif
  check_all();
}

static void count_errors(MPI_Comm* comm, int* code, ...) {
  (void)comm;
  (void)code;
  ++errors;
}

/* A small truncated message is MPI's own, and raises MPI's own error. */
static void raised_once(int bytes, int form) {
  MPI_Comm comm;
  MPI_Errhandler handler;
  MPI_Request request;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_create_errhandler(count_errors, &handler);
  MPI_Comm_set_errhandler(comm, handler);
  MPI_Errhandler_free(&handler);
  check_warm(comm);
  errors = 0;
  if (rank == 0) CHECK_CALL(MPI_Send(out, bytes, MPI_BYTE, 1, 2, comm));
  if (rank == 1) {
    if (form == 0) {
      MPI_Recv_init(in, bytes / 2, MPI_BYTE, 0, 2, comm, &request);
      MPI_Start(&request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      MPI_Request_free(&request);
    } else {
      MPI_Irecv(in, bytes / 2, MPI_BYTE, 0, 2, comm, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    CHECK(errors == 1);
  }
  MPI_Barrier(comm);
  MPI_Comm_free(&comm);
}

static void failed_after_free(void) {
  MPI_Comm comm;
  MPI_Request request;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  check_warm(comm);
  if (rank == 1) MPI_Irecv(in, room, MPI_BYTE, 0, 3, comm, &request);
  MPI_Barrier(comm);
  if (rank == 0) MPI_Isend(out, big, MPI_BYTE, 1, 3, comm, &request);
  MPI_Comm_free(&comm);
  const int code = MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK(class_of(code) == (rank == 0 ? MPI_SUCCESS : MPI_ERR_TRUNCATE));
}

/* The callback of an attribute receives a message as a program does that does not know its size. */
static int drain(MPI_Comm comm, int key, void* value, void* extra) {
  MPI_Status status;
  int bytes = 0;
  (void)key;
  (void)extra;
  MPI_Probe(0, 5, comm, &status);
  MPI_Get_count(&status, MPI_BYTE, &bytes);
  CHECK(bytes == big);
  CHECK_CALL(MPI_Recv(in, bytes, MPI_BYTE, 0, 5, comm, &status));
  *(int*)value = 1;
  return MPI_SUCCESS;
}

static void drained(int early, int probed) {
  MPI_Comm comm;
  MPI_Request request;
  int key, flag = 0, called = 0;
  fill();
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, drain, &key, NULL);
  if (early && rank == 1) MPI_Comm_set_attr(comm, key, &called);
  check_warm(comm);
  if (!early && rank == 1) MPI_Comm_set_attr(comm, key, &called);
  if (rank == 0) MPI_Isend(out, big, MPI_BYTE, 1, 5, comm, &request);
  while (probed && rank == 1 && !flag) MPI_Iprobe(0, 5, comm, &flag, MPI_STATUS_IGNORE);
  MPI_Comm_free(&comm);
  MPI_Comm_free_keyval(&key);
  if (rank == 0) CHECK_CALL(MPI_Wait(&request, MPI_STATUS_IGNORE));
  if (rank == 1) CHECK(called);
  if (rank == 1) check_all();
}

static void* free_type(void* type) {
  usleep(100000);
  MPI_Type_free(type);
  return NULL;
}

/* Every second double, `doubles` of them. */
static void type_freed_under_receive(void) {
  enum { doubles = big / 16 };
  MPI_Datatype type;
  pthread_t thread;
  double *from = (double*)out, *to = (double*)in;
  MPI_Type_vector(doubles, 1, 2, MPI_DOUBLE, &type);
  MPI_Type_commit(&type);
  for (int i = 0; i < doubles; ++i) from[i] = i;
  memset(in, 0, big);
  if (rank == 0) {
    usleep(300000);
    CHECK_CALL(MPI_Send(from, doubles, MPI_DOUBLE, 1, 4, MPI_COMM_WORLD));
    MPI_Type_free(&type);
    return;
  }
  pthread_create(&thread, NULL, free_type, &type);
  CHECK_CALL(MPI_Recv(to, 1, type, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  pthread_join(thread, NULL);
  int good = 1;
  for (int i = 0; i < doubles; ++i) good = good && to[2 * i] == i && to[2 * i + 1] == 0;
  CHECK(good);
}

/* A disconnected communicator has no message under way, also where its request was freed. */
static void disconnected(void) {
  MPI_Comm comm;
  MPI_Request request;
  fill();
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  check_warm(comm);
  if (rank == 0) {
    CHECK_CALL(MPI_Isend(out, big, MPI_BYTE, 1, 7, comm, &request));
    CHECK_CALL(MPI_Request_free(&request));
  } else {
    CHECK_CALL(MPI_Irecv(in, big, MPI_BYTE, 0, 7, comm, &request));
    usleep(200000);
    CHECK_CALL(MPI_Wait(&request, MPI_STATUS_IGNORE));
    check_all();
  }
  CHECK_CALL(MPI_Comm_disconnect(&comm));
  if (rank == 0) memset(out, 0x11, big);
  PMPI_Barrier(MPI_COMM_WORLD);
}

static int ended;

static int receive_at_end(MPI_Comm comm, int key, void* value, void* extra) {
  (void)comm;
  (void)key;
  (void)value;
  (void)extra;
  MPI_Status status;
  int bytes = 0;
  CHECK_CALL(MPI_Recv(in, big, MPI_BYTE, 0, 6, MPI_COMM_WORLD, &status));
  MPI_Get_count(&status, MPI_BYTE, &bytes);
  CHECK(bytes == big);
  check_all();
  CHECK_CALL(MPI_Barrier(MPI_COMM_WORLD));
  ended = 1;
  return MPI_SUCCESS;
}

int main(int argc, char** argv) {
  int provided = 0, key = 0, all = 0;
  const int multiple = argc > 1;
  MPI_Init_thread(&argc, &argv, multiple ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Alloc_mem(big, MPI_INFO_NULL, &out);
  MPI_Alloc_mem(big, MPI_INFO_NULL, &in);
  check_warm(MPI_COMM_WORLD);
  for (int i = 0; i < 5; ++i) CHECK_CALL(MPI_Barrier(MPI_COMM_WORLD)); /* served from here on */
  errors_untouched(0);
  errors_untouched(1);
  for (int form = 0; form < 2; ++form) {
    raised_once(big, form);
    raised_once(64, form);
  }
  failed_after_free();
  disconnected();
  for (int which = 0; which < 4; ++which) {
    if (!multiple || which < 2) drained(which % 2, which / 2);
  }
  if (multiple && provided == MPI_THREAD_MULTIPLE) type_freed_under_receive();
  fill();
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, receive_at_end, &key, NULL);
  if (rank == 1) MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
  PMPI_Allreduce(&check_failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  /* The other rank is in MPI_Finalize. */
  if (rank == 0) CHECK_CALL(MPI_Send(out, big, MPI_BYTE, 1, 6, MPI_COMM_WORLD));
  if (rank == 0) CHECK_CALL(MPI_Barrier(MPI_COMM_WORLD));
  MPI_Finalize();
  CHECK(rank != 1 || ended);
  return all != 0 || check_failures != 0;
}
