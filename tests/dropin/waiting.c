/* A rank that waits in a collective progresses what it and others have under way in MPI, whatever
 * lies unreceived in its queue. Each case ends on a plain MPI by MPI's rule of progress; where the
 * waiting rank does not progress, it never ends, and the alarm says in which case.
 *
 *   waiting [CASE...]       all cases, if none is named; 2 ranks or more, of which 0 and 1 act
 *
 * Every case first leaves a message in rank 0's queue that nobody receives before the end of it:
 * MPIs make no progress in a probe that such a message matches. */
#define _GNU_SOURCE
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

enum { large = 8 << 20, seconds_to_end = 60, counters = 64, elements = 1 << 20, many_rounds = 3 };

static int rank, ranks;
static MPI_Comm other;
static char* message;
static int word;
static MPI_Request unreceived = MPI_REQUEST_NULL;
static char under_way[128];

static void say_and_leave(int signal) {
  (void)signal;
  if (write(STDERR_FILENO, under_way, strlen(under_way)) < 0) _exit(1);
  _exit(1);
}

static void work(double seconds) {
  struct timespec time = {0, (long)(1e9 * seconds)};
  nanosleep(&time, NULL);
}

/* The message that lies in rank 0's queue; its send is not waited for, so nothing counts on it. */
static void leave_a_message(MPI_Comm comm) {
  word = 17;
  if (rank == 1) CHECK_CALL(MPI_Isend(&word, 1, MPI_INT, 0, 1, comm, &unreceived));
}

static void receive_it(MPI_Comm comm) {
  int received = 0;
  if (rank == 0) {
    CHECK_CALL(MPI_Recv(&received, 1, MPI_INT, 1, 1, comm, MPI_STATUS_IGNORE));
    CHECK(received == 17);
  }
  CHECK_CALL(MPI_Wait(&unreceived, MPI_STATUS_IGNORE));
}

static void fill(int value) { memset(message, value, large); }

static void check_message(int value) {
  CHECK(message[0] == value && message[large / 2] == value && message[large - 1] == value);
}

/* Rank 0 has posted its receive and waits; rank 1's send needs rank 0 to answer it. */
static void receive_posted(void) {
  MPI_Request request = MPI_REQUEST_NULL;
  fill(rank == 1 ? 5 : 0);
  if (rank == 0) MPI_Irecv(message, large, MPI_CHAR, 1, 2, MPI_COMM_WORLD, &request);
  leave_a_message(MPI_COMM_WORLD);
  if (rank == 1) {
    work(0.3);
    CHECK_CALL(MPI_Send(message, large, MPI_CHAR, 0, 2, MPI_COMM_WORLD));
  }
  CHECK_CALL(MPI_Barrier(MPI_COMM_WORLD));
  receive_it(MPI_COMM_WORLD);
  CHECK_CALL(MPI_Wait(&request, MPI_STATUS_IGNORE));
  if (rank == 0) check_message(5);
}

/* Rank 0 has started a send and waits; rank 1 receives first, and the data come from rank 0. */
static void send_started(void) {
  MPI_Request request = MPI_REQUEST_NULL;
  double sum = 1, all = 0;
  fill(rank == 0 ? 6 : 0);
  leave_a_message(MPI_COMM_WORLD);
  if (rank == 0) MPI_Isend(message, large, MPI_CHAR, 1, 2, MPI_COMM_WORLD, &request);
  if (rank == 1) {
    work(0.1);
    CHECK_CALL(MPI_Recv(message, large, MPI_CHAR, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    check_message(6);
  }
  CHECK_CALL(MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
  CHECK(all == ranks);
  CHECK_CALL(MPI_Wait(&request, MPI_STATUS_IGNORE));
  receive_it(MPI_COMM_WORLD);
}

/* Rank 1 locks, adds to and reads the window of rank 0, which waits. */
static void window(void) {
  static long memory[counters];
  long one = 1, before, sum = 0;
  MPI_Win made;
  memset(memory, 0, sizeof memory);
  CHECK_CALL(
      MPI_Win_create(memory, sizeof memory, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &made));
  leave_a_message(MPI_COMM_WORLD);
  if (rank == 1) {
    work(0.1);
    for (int i = 0; i < counters; ++i) {
      MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, made);
      MPI_Fetch_and_op(&one, &before, MPI_LONG, 0, i % 8, MPI_SUM, made);
      MPI_Win_unlock(0, made);
      CHECK(before == i / 8);
    }
  }
  CHECK_CALL(MPI_Barrier(MPI_COMM_WORLD));
  receive_it(MPI_COMM_WORLD);
  CHECK_CALL(MPI_Win_free(&made));
  for (int i = 0; i < counters; ++i) sum += memory[i];
  CHECK(sum == (rank == 0 ? counters : 0));
}

/* Rank 1 waits for a collective of MPI on another communicator, which rank 0 has started, too. */
static void collective(void) {
  static int in[elements], out[elements];
  MPI_Request request;
  for (int i = 0; i < elements; ++i) in[i] = rank + i;
  leave_a_message(MPI_COMM_WORLD);
  CHECK_CALL(MPI_Iallreduce(in, out, elements, MPI_INT, MPI_SUM, other, &request));
  if (rank == 1) {
    work(0.1);
    CHECK_CALL(MPI_Wait(&request, MPI_STATUS_IGNORE));
  }
  CHECK_CALL(MPI_Barrier(MPI_COMM_WORLD));
  CHECK_CALL(MPI_Wait(&request, MPI_STATUS_IGNORE));
  for (int i = 0; i < elements; ++i) CHECK(out[i] == ranks * (ranks - 1) / 2 + ranks * i);
  receive_it(MPI_COMM_WORLD);
}

static const struct Case {
  const char* name;
  void (*run)(void);
} cases[] = {{"receive", receive_posted},
             {"send", send_started},
             {"window", window},
             {"collective", collective}};

static void run(const struct Case* one) {
  snprintf(under_way, sizeof under_way, "waiting.c: rank %d: no end after %d s of `%s`\n", rank,
           seconds_to_end, one->name);
  alarm(seconds_to_end);
  for (int round = 0; round < many_rounds; ++round) one->run();
  alarm(0);
}

/* Teams are made at the second call on a communicator, and what is asked here is of teams. */
static void warm_up(void) {
  int one = 1, all;
  for (int i = 0; i < 4; ++i) MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  message = malloc(large);
  signal(SIGALRM, say_and_leave);
  warm_up();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    int wanted = argc < 2;
    for (int j = 1; j < argc; ++j) wanted |= strcmp(argv[j], cases[i].name) == 0;
    if (wanted) run(&cases[i]);
  }
  free(message);
  MPI_Comm_free(&other);
  return check_finish();
}
