/* What a nonblocking collective and the wait for it take. Knows MPI alone: run it as it is and with
 * the drop-in preloaded; nonblocking.py does both in turns.
 *
 *   nonblocking [--op NAME,...] [--sizes BYTES,...] [--rounds R] [--sample-us T]
 *
 * Prints a line a case: name, bytes, microseconds a call, of the slowest rank. `bytes` go to each
 * rank, or are those of the vector. Medians over R (9) rounds of loops that last T (3000).
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { most_bytes = 1 << 23, most_rounds = 101 };

static int rank, ranks, rounds = 9;
static double sample_us = 3000;
static double *sent, *received;

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

#define OPERATION(name, Name, ...)                       \
  static void name(int count, int n) {                   \
    for (int i = 0; i < n; ++i) {                        \
      MPI_Request request;                               \
      MPI_##Name(__VA_ARGS__, MPI_COMM_WORLD, &request); \
      MPI_Wait(&request, MPI_STATUS_IGNORE);             \
    }                                                    \
  }
OPERATION(iallreduce, Iallreduce, sent, received, count, MPI_DOUBLE, MPI_SUM)
OPERATION(ireduce, Ireduce, sent, received, count, MPI_DOUBLE, MPI_SUM, 0)
OPERATION(ireduce_scatter_block, Ireduce_scatter_block, sent, received, count, MPI_DOUBLE, MPI_SUM)
OPERATION(ibcast, Ibcast, sent, count, MPI_DOUBLE, 0)
OPERATION(iallgather, Iallgather, sent, count, MPI_DOUBLE, received, count, MPI_DOUBLE)
OPERATION(ialltoall, Ialltoall, sent, count, MPI_DOUBLE, received, count, MPI_DOUBLE)

struct Operation {
  const char* name;
  void (*call)(int count, int n);
};
static const struct Operation operations[] = {
    {"iallreduce", iallreduce},
    {"ireduce", ireduce},
    {"ireduce_scatter_block", ireduce_scatter_block},
    {"ibcast", ibcast},
    {"iallgather", iallgather},
    {"ialltoall", ialltoall},
};

/* Microseconds a call, of the slowest rank. */
static double measure(const struct Operation* o, int count, int n) {
  double own, all;
  PMPI_Barrier(MPI_COMM_WORLD);
  const double started = now_us();
  o->call(count, n);
  own = (now_us() - started) / n;
  PMPI_Allreduce(&own, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return all;
}

static int ascending(const void* a, const void* b) {
  double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static void print_case(const struct Operation* o, int bytes) {
  static double times[most_rounds];
  const int count = bytes / 8;
  const double once = measure(o, count, 20);
  const int n = once * 20 > sample_us ? 20 : (int)(sample_us / once) + 1;
  for (int round = 0; round < rounds; ++round) times[round] = measure(o, count, n);
  qsort(times, (size_t)rounds, sizeof(double), ascending);
  if (rank == 0) printf("%s %d %.4f\n", o->name, bytes, times[rounds / 2]);
}

static int is_in(const char* list, const char* name) {
  const size_t length = strlen(name);
  for (const char* at = list; (at = strstr(at, name)) != NULL; at += length) {
    if ((at == list || at[-1] == ',') && (at[length] == ',' || at[length] == '\0')) return 1;
  }
  return 0;
}

static void print_all(const char* names, const char* sizes) {
  for (size_t i = 0; i < sizeof operations / sizeof *operations; ++i) {
    if (!is_in(names, operations[i].name)) continue;
    for (const char* at = sizes; *at != '\0';) {
      char* end;
      const long bytes = strtol(at, &end, 10);
      if (bytes >= 8 && bytes * ranks <= most_bytes) print_case(&operations[i], (int)bytes);
      at = *end == ',' ? end + 1 : end + strlen(end);
    }
  }
}

int main(int argc, char** argv) {
  const char* names = "iallreduce,ireduce,ireduce_scatter_block,ibcast,iallgather,ialltoall";
  const char* sizes = "8,1024,16384,65536,262144,1048576";
  for (int i = 1; i + 1 < argc; i += 2) {
    if (strcmp(argv[i], "--op") == 0) names = argv[i + 1];
    if (strcmp(argv[i], "--sizes") == 0) sizes = argv[i + 1];
    if (strcmp(argv[i], "--rounds") == 0) rounds = atoi(argv[i + 1]);
    if (strcmp(argv[i], "--sample-us") == 0) sample_us = atof(argv[i + 1]);
  }
  if (rounds < 1 || rounds > most_rounds) rounds = 9;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  sent = malloc(most_bytes);
  received = malloc(most_bytes);
  for (int i = 0; i < most_bytes / 8; ++i) sent[i] = received[i] = rank + i % 100;
  /* The drop-in learns of a communicator by its first blocking collectives. */
  for (int i = 0; i < 3; ++i) MPI_Barrier(MPI_COMM_WORLD);
  print_all(names, sizes);
  MPI_Finalize();
  return 0;
}
