/* What a rank that waits in MPI_Barrier costs those that need it, and itself. Knows MPI alone: run
 * it as it is and with the drop-in preloaded; progress.py does both in turns.
 *
 *   progress [--operations N] [--rounds R] [--away-ms T] [--unreceived 0|1]
 *
 * Rank 0 waits in MPI_Barrier; rank 1 stays away for T ms (300), so that rank 0 waits as it does
 * after a long time, and then does N (200) operations that need rank 0: sends of 256 KiB to
 * receives that rank 0 has posted, or MPI_Fetch_and_op on its window. "unreceived" is the same with
 * a message in rank 0's queue that it receives later only. Prints a line a case: name, microseconds
 * an operation by MPI_Barrier, by PMPI_Barrier. Then "idle": the percentage of a core that rank 0
 * uses while it waits for one second with nothing to do. Medians of R (5) rounds. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { message_bytes = 256 << 10, most_rounds = 101, most_operations = 10000 };

static int rank, ranks;
static int operations = 200, rounds = 5, away_ms = 300;
static char* messages;
static MPI_Request* requests;
static MPI_Win window;
static long counter;

typedef int (*Barrier)(MPI_Comm);

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

static double used_us(void) {
  struct rusage use;
  getrusage(RUSAGE_SELF, &use);
  return 1e6 * (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
         (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

static void stay_away(int ms) {
  struct timespec time = {ms / 1000, (ms % 1000) * 1000000L};
  nanosleep(&time, NULL);
}

/* Several into one place, so that they stay in the cache: nobody reads them. */
static void post_receives(void) {
  for (int i = 0; i < operations; ++i) {
    MPI_Irecv(messages + (size_t)(i % 8) * message_bytes, message_bytes, MPI_CHAR, 1, 2 + i,
              MPI_COMM_WORLD, &requests[i]);
  }
}

static void send_all(void) {
  for (int i = 0; i < operations; ++i) {
    MPI_Send(messages, message_bytes, MPI_CHAR, 0, 2 + i, MPI_COMM_WORLD);
  }
}

static void fetch_all(void) {
  long one = 1, before;
  MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
  for (int i = 0; i < operations; ++i) {
    MPI_Fetch_and_op(&one, &before, MPI_LONG, 0, 0, MPI_SUM, window);
    MPI_Win_flush(0, window);
  }
  MPI_Win_unlock(0, window);
}

/* Microseconds an operation, on rank 1. */
static double measure(Barrier barrier, int fetches, int unreceived) {
  MPI_Request early = MPI_REQUEST_NULL;
  int word = 0;
  double started = 0, each = 0;
  if (rank == 0 && !fetches) post_receives();
  PMPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1) {
    if (unreceived) MPI_Isend(&word, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, &early);
    stay_away(away_ms);
    started = now_us();
    fetches ? fetch_all() : send_all();
    each = (now_us() - started) / operations;
  }
  barrier(MPI_COMM_WORLD);
  if (rank == 0 && unreceived) MPI_Recv(&word, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank == 0 && !fetches) MPI_Waitall(operations, requests, MPI_STATUSES_IGNORE);
  MPI_Wait(&early, MPI_STATUS_IGNORE);
  return each;
}

/* Percent of a core that rank 0 uses while rank 1 is away for a second. */
static double measure_idle(Barrier barrier) {
  double used, started;
  PMPI_Barrier(MPI_COMM_WORLD);
  used = used_us();
  started = now_us();
  if (rank == 1) stay_away(1000);
  barrier(MPI_COMM_WORLD);
  return 100 * (used_us() - used) / (now_us() - started);
}

static int ascending(const void* a, const void* b) {
  double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

/* Both barriers in turns; the figure is of one rank, and rank 0 prints it. */
static void print_case(const char* name, int fetches, int unreceived, int idle) {
  static double times[2][most_rounds];
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < 2; ++i) {
      int which = (i + round) % 2;
      Barrier barrier = which ? PMPI_Barrier : MPI_Barrier;
      double figure = idle ? measure_idle(barrier) : measure(barrier, fetches, unreceived);
      PMPI_Bcast(&figure, 1, MPI_DOUBLE, idle ? 0 : 1, MPI_COMM_WORLD);
      times[which][round] = figure;
    }
  }
  for (int which = 0; which < 2; ++which) {
    qsort(times[which], (size_t)rounds, sizeof(double), ascending);
  }
  if (rank == 0) {
    printf("%s %.3f %.3f\n", name, times[0][rounds / 2], times[1][rounds / 2]);
    fflush(stdout);
  }
}

static void warm_up(void) {
  for (int i = 0; i < 10; ++i) MPI_Barrier(MPI_COMM_WORLD);
  measure(MPI_Barrier, 0, 0);
}

/* Before the first window, and after it: what waits may look at the MPI in another way then. */
static void print_all(int unreceived) {
  print_case("send", 0, 0, 0);
  if (unreceived) print_case("send-unreceived", 0, 1, 0);
  print_case("idle", 0, 0, 1);
  MPI_Win_create(&counter, sizeof counter, sizeof counter, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  print_case("fetch", 1, 0, 0);
  if (unreceived) print_case("fetch-unreceived", 1, 1, 0);
  print_case("idle-with-window", 0, 0, 1);
  MPI_Win_free(&window);
}

int main(int argc, char** argv) {
  int unreceived = 1;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (strcmp(argv[i], "--operations") == 0) operations = atoi(argv[i + 1]);
    if (strcmp(argv[i], "--rounds") == 0) rounds = atoi(argv[i + 1]);
    if (strcmp(argv[i], "--away-ms") == 0) away_ms = atoi(argv[i + 1]);
    if (strcmp(argv[i], "--unreceived") == 0) unreceived = atoi(argv[i + 1]);
  }
  if (operations < 1 || operations > most_operations) operations = 200;
  if (rounds < 1 || rounds > most_rounds) rounds = 5;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks < 2) MPI_Abort(MPI_COMM_WORLD, 2);
  messages = calloc(8, message_bytes);
  requests = malloc((size_t)operations * sizeof *requests);
  warm_up();
  print_all(unreceived);
  free(requests);
  free(messages);
  MPI_Finalize();
  return 0;
}
