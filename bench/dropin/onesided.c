/* What one-sided operations on a window take. Knows MPI alone: run it as it is
 * and with the drop-in preloaded; onesided.py does both in turns.
 *
 *   onesided [--window allocate|create] [--sizes BYTES,...] [--rounds R] [--sample-us T]
 *
 * Rank 1 operates on the memory of rank 0, which waits in PMPI_Barrier, so that MPI progresses;
 * each operation is followed by MPI_Win_flush, within MPI_Win_lock_all. `lock` is MPI_Win_lock, a
 * put of 8 bytes and MPI_Win_unlock; `fence` is MPI_Win_fence on both ranks, and `make` is to make
 * another window of 1 MiB of each rank, and to free it. Prints a line a case:
 * name, bytes, microseconds an operation: the median over R (9) rounds of loops that last T (3000).
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { most_bytes = 1 << 20, most_rounds = 101 };

static int rank, create, rounds = 9;
static double sample_us = 3000;
static MPI_Win window;
static char* memory;
static char buffer[most_bytes];

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

static void put(int bytes, int n) {
  for (int i = 0; i < n; ++i) {
    MPI_Put(buffer, bytes, MPI_BYTE, 0, 0, bytes, MPI_BYTE, window);
    MPI_Win_flush(0, window);
  }
}
static void get(int bytes, int n) {
  for (int i = 0; i < n; ++i) {
    MPI_Get(buffer, bytes, MPI_BYTE, 0, 0, bytes, MPI_BYTE, window);
    MPI_Win_flush(0, window);
  }
}
static void accumulate(int bytes, int n) {
  for (int i = 0; i < n; ++i) {
    MPI_Accumulate(buffer, bytes / 8, MPI_DOUBLE, 0, 0, bytes / 8, MPI_DOUBLE, MPI_SUM, window);
    MPI_Win_flush(0, window);
  }
}
static void fetch(int bytes, int n) {
  long long one = 1, before;
  (void)bytes;
  for (int i = 0; i < n; ++i) {
    MPI_Fetch_and_op(&one, &before, MPI_LONG_LONG, 0, 0, MPI_SUM, window);
    MPI_Win_flush(0, window);
  }
}
static void swap(int bytes, int n) {
  long long one = 1, other = 2, before;
  (void)bytes;
  for (int i = 0; i < n; ++i) {
    MPI_Compare_and_swap(&one, &other, &before, MPI_LONG_LONG, 0, 0, window);
    MPI_Win_flush(0, window);
  }
}
static void lock(int bytes, int n) {
  for (int i = 0; i < n; ++i) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
    MPI_Put(buffer, bytes, MPI_BYTE, 0, 0, bytes, MPI_BYTE, window);
    MPI_Win_unlock(0, window);
  }
}
static void fence(int bytes, int n) {
  (void)bytes;
  for (int i = 0; i < n; ++i) MPI_Win_fence(0, window);
}

/* A window by MPI_Win_allocate, or by MPI_Win_create over memory of MPI_Alloc_mem. */
static MPI_Win new_window(char** base) {
  MPI_Win made;
  if (create) {
    MPI_Win_create(*base, most_bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &made);
  } else {
    MPI_Win_allocate(most_bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, base, &made);
  }
  return made;
}
static void make(int bytes, int n) {
  (void)bytes;
  for (int i = 0; i < n; ++i) {
    char* base = memory;
    MPI_Win made = new_window(&base);
    MPI_Win_free(&made);
  }
}

struct Case {
  const char* name;
  void (*operate)(int bytes, int n);
  int sized, locked, both;
};
static const struct Case cases[] = {
    {"put", put, 1, 1, 0},     {"get", get, 1, 1, 0},   {"accumulate", accumulate, 1, 1, 0},
    {"fetch", fetch, 0, 1, 0}, {"swap", swap, 0, 1, 0}, {"lock", lock, 0, 0, 0},
    {"fence", fence, 0, 0, 1}, {"make", make, 0, 0, 1},
};

/* Microseconds an operation, on rank 1. */
static double measure(const struct Case* c, int bytes, int n) {
  double each = 0;
  PMPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1 || c->both) {
    if (c->locked) MPI_Win_lock_all(0, window);
    const double started = now_us();
    c->operate(bytes, n);
    each = (now_us() - started) / n;
    if (c->locked) MPI_Win_unlock_all(window);
  }
  PMPI_Barrier(MPI_COMM_WORLD);
  PMPI_Bcast(&each, 1, MPI_DOUBLE, 1, MPI_COMM_WORLD);
  return each;
}

static int ascending(const void* a, const void* b) {
  double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static void print_case(const struct Case* c, int bytes) {
  static double times[most_rounds];
  const double once = measure(c, bytes, 20);
  const int n = once * 20 > sample_us ? 20 : (int)(sample_us / once) + 1;
  for (int round = 0; round < rounds; ++round) times[round] = measure(c, bytes, n);
  qsort(times, (size_t)rounds, sizeof(double), ascending);
  if (rank == 0) printf("%s %d %.4f\n", c->name, bytes, times[rounds / 2]);
}

static void print_all(const char* sizes) {
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    if (!cases[i].sized) {
      print_case(&cases[i], 8);
      continue;
    }
    for (const char* at = sizes; *at != '\0';) {
      char* end;
      const long bytes = strtol(at, &end, 10);
      if (bytes >= 8 && bytes <= most_bytes) print_case(&cases[i], (int)bytes);
      at = *end == ',' ? end + 1 : end + strlen(end);
    }
  }
}

int main(int argc, char** argv) {
  const char* sizes = "8,512,4096,65536";
  int ranks;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (strcmp(argv[i], "--sizes") == 0) sizes = argv[i + 1];
    if (strcmp(argv[i], "--window") == 0) create = strcmp(argv[i + 1], "create") == 0;
    if (strcmp(argv[i], "--rounds") == 0) rounds = atoi(argv[i + 1]);
    if (strcmp(argv[i], "--sample-us") == 0) sample_us = atof(argv[i + 1]);
  }
  if (rounds < 1 || rounds > most_rounds) rounds = 9;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks != 2) MPI_Abort(MPI_COMM_WORLD, 2);
  if (create) MPI_Alloc_mem(most_bytes, MPI_INFO_NULL, &memory);
  window = new_window(&memory);
  memset(memory, 0, most_bytes);
  print_all(sizes);
  MPI_Win_free(&window);
  if (create) MPI_Free_mem(memory);
  MPI_Finalize();
  return 0;
}
