/* What a round of a persistent collective takes (MPI_Start, MPI_Wait), and the blocking call of the
 * same collective in the same process. Knows MPI alone: run it as it is and with the drop-in
 * preloaded; persistent.py does both in turns.
 *
 *   persistent [--op NAME,...] [--sizes BYTES,...] [--rounds R] [--sample-us T]
 *              [--memory malloc|static]
 *
 * Static memory is the program's own, which no other rank maps.
 *
 * Prints a line a case: op, bytes, microseconds of a persistent round, microseconds of the blocking
 * call, whether the result was right. Medians over R (9) rounds of loops that last T (3000), of
 * the slowest rank; the two take turns.
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { static_bytes = 1 << 22, most_rounds = 101 };

static int rank, ranks, rounds = 9;
static double sample_us = 3000;
static double static_send[static_bytes / 8], static_receive[static_bytes / 8];
static double *sent, *received;

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

static MPI_Request request;

/* For each operation: one function that sets it up, and one that makes n blocking calls. */
#define OPERATION(name, Name, ...)                                           \
  static void set_up_##name(int count) {                                     \
    (void)count;                                                             \
    MPI_##Name##_init(__VA_ARGS__, MPI_COMM_WORLD, MPI_INFO_NULL, &request); \
  }                                                                          \
  static void call_##name(int count, int n) {                                \
    (void)count;                                                             \
    for (int i = 0; i < n; ++i) MPI_##Name(__VA_ARGS__, MPI_COMM_WORLD);     \
  }
OPERATION(allreduce, Allreduce, sent, received, count, MPI_DOUBLE, MPI_SUM)
OPERATION(reduce, Reduce, sent, received, count, MPI_DOUBLE, MPI_SUM, 0)
OPERATION(scan, Scan, sent, received, count, MPI_DOUBLE, MPI_SUM)
OPERATION(bcast, Bcast, sent, count, MPI_DOUBLE, 0)
OPERATION(alltoall, Alltoall, sent, count, MPI_DOUBLE, received, count, MPI_DOUBLE)
OPERATION(allgather, Allgather, sent, count, MPI_DOUBLE, received, count, MPI_DOUBLE)

/* MPI_Barrier takes one argument only. */
static void set_up_barrier(int count) {
  (void)count;
  MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &request);
}
static void call_barrier(int count, int n) {
  (void)count;
  for (int i = 0; i < n; ++i) MPI_Barrier(MPI_COMM_WORLD);
}

struct Operation {
  const char* name;
  void (*set_up)(int count);
  void (*call)(int count, int n);
  int sized, receives; /* 0: nowhere to look, 1: into `received`, 2: into `sent` */
};
static const struct Operation operations[] = {
    {"barrier", set_up_barrier, call_barrier, 0, 0},
    {"allreduce", set_up_allreduce, call_allreduce, 1, 1},
    {"reduce", set_up_reduce, call_reduce, 1, 1},
    {"scan", set_up_scan, call_scan, 1, 1},
    {"bcast", set_up_bcast, call_bcast, 1, 2},
    {"alltoall", set_up_alltoall, call_alltoall, 1, 1},
    {"allgather", set_up_allgather, call_allgather, 1, 1},
};

/* Microseconds a call, of the slowest rank. */
static double measure(const struct Operation* o, int count, int persistent, int n) {
  double own, all;
  PMPI_Barrier(MPI_COMM_WORLD);
  const double started = now_us();
  if (persistent) {
    for (int i = 0; i < n; ++i) {
      MPI_Start(&request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
  } else {
    o->call(count, n);
  }
  own = (now_us() - started) / n;
  PMPI_Allreduce(&own, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return all;
}

static int ascending(const void* a, const void* b) {
  double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static void fill(size_t bytes) {
  for (size_t i = 0; i < bytes / 8; ++i) {
    sent[i] = rank + (double)(i % 100);
    received[i] = -1;
  }
}

/* A round against MPI's own blocking call, byte for byte. */
static int right(const struct Operation* o, int count, size_t bytes) {
  if (o->receives == 0) return 1;
  const double* result = o->receives == 1 ? received : sent;
  char* expected = malloc(bytes);
  int same, all;
  fill(bytes);
  o->call(count, 1);
  memcpy(expected, result, bytes);
  fill(bytes);
  MPI_Start(&request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  same = memcmp(expected, result, bytes) == 0;
  free(expected);
  PMPI_Allreduce(&same, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  return all;
}

static int loops(const struct Operation* o, int count, int persistent) {
  const double once = measure(o, count, persistent, 20);
  return once * 20 > sample_us ? 20 : (int)(sample_us / once) + 1;
}

static void print_case(const struct Operation* o, int bytes) {
  static double times[2][most_rounds];
  const int count = bytes / 8;
  o->set_up(count);
  int is_right = right(o, count, (size_t)bytes * (size_t)ranks);
  const int n[2] = {loops(o, count, 0), loops(o, count, 1)};
  for (int round = 0; round < 2 * rounds; ++round) {
    const int persistent = round % 2;
    times[persistent][round / 2] = measure(o, count, persistent, n[persistent]);
  }
  is_right = right(o, count, (size_t)bytes * (size_t)ranks) && is_right;
  MPI_Request_free(&request);
  for (int i = 0; i < 2; ++i) qsort(times[i], (size_t)rounds, sizeof(double), ascending);
  if (rank != 0) return;
  printf("%s %d %.4f %.4f %s\n", o->name, bytes, times[1][rounds / 2], times[0][rounds / 2],
         is_right ? "right" : "WRONG");
  fflush(stdout);
}

static int is_in(const char* list, const char* name) {
  const size_t length = strlen(name);
  for (const char* at = list; (at = strstr(at, name)) != NULL; at += length) {
    if ((at == list || at[-1] == ',') && (at[length] == ',' || at[length] == '\0')) return 1;
  }
  return 0;
}

/* Each rank on one core of its own, where there are enough and the launcher has not done it. */
static void pin(void) {
  cpu_set_t cores, mine;
  int seen = 0;
  if (sched_getaffinity(0, sizeof cores, &cores) != 0 || CPU_COUNT(&cores) < ranks) return;
  CPU_ZERO(&mine);
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &cores) && seen++ == rank) CPU_SET(core, &mine);
  }
  sched_setaffinity(0, sizeof mine, &mine);
}

static void print_all(const char* names, const char* sizes) {
  for (size_t i = 0; i < sizeof operations / sizeof *operations; ++i) {
    const struct Operation* o = &operations[i];
    if (!is_in(names, o->name)) continue;
    if (!o->sized) print_case(o, 0);
    for (const char* at = sizes; o->sized && *at != '\0';) {
      char* end;
      const long bytes = strtol(at, &end, 10);
      if (bytes >= 8 && bytes * ranks <= static_bytes) print_case(o, (int)bytes);
      at = *end == ',' ? end + 1 : end + strlen(end);
    }
  }
}

int main(int argc, char** argv) {
  const char* names = "barrier,allreduce,bcast,alltoall";
  const char* sizes = "8,512,4096,16384,65536,262144,1048576";
  int is_static = 0;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (strcmp(argv[i], "--op") == 0) names = argv[i + 1];
    if (strcmp(argv[i], "--sizes") == 0) sizes = argv[i + 1];
    if (strcmp(argv[i], "--rounds") == 0) rounds = atoi(argv[i + 1]);
    if (strcmp(argv[i], "--sample-us") == 0) sample_us = atof(argv[i + 1]);
    if (strcmp(argv[i], "--memory") == 0) is_static = strcmp(argv[i + 1], "static") == 0;
  }
  if (rounds < 1 || rounds > most_rounds) rounds = 9;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  pin();
  sent = is_static ? static_send : malloc(static_bytes);
  received = is_static ? static_receive : malloc(static_bytes);
  fill(static_bytes);
  print_all(names, sizes);
  MPI_Finalize();
  return 0;
}
