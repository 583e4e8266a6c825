/* What messages between two ranks of a node take. Knows MPI alone: run it as it is and with the
 * drop-in preloaded; messages.py does both in turns.
 *
 *   messages [--level single|multiple] [--write] [--sizes BYTES,...] [--rounds R] [--sample-us T]
 *
 * `pingpong` is MPI_Send and MPI_Recv, one way; `window` is a message of eight that are under way
 * at a time, by MPI_Isend, MPI_Irecv and MPI_Waitall; `both` is MPI_Sendrecv, with as much in each
 * direction. With --write the sender writes its buffer before each message, which is timed as
 * well. --level is the thread level that MPI_Init_thread is asked for; one thread calls MPI.
 * Prints a line a case: name, bytes, microseconds a message: the median over R (9) rounds of loops
 * that last T (3000).
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { most_bytes = 1 << 26, most_rounds = 101, window_size = 8 };

static int rank, other, rounds = 9, writes;
static double sample_us = 3000;
static char *out, *in;

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

static void write_out(char* data, int bytes, int with) {
  if (writes) memset(data, with, (size_t)bytes);
}

static void pingpong(int bytes, int n) {
  for (int i = 0; i < n; ++i) {
    if (i % 2 == rank) {
      write_out(out, bytes, i);
      MPI_Send(out, bytes, MPI_BYTE, other, 1, MPI_COMM_WORLD);
    } else {
      MPI_Recv(in, bytes, MPI_BYTE, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
  }
}

/* Each message of a window has a buffer of its own, as far as there is room. */
static char* place(char* all, int i, int bytes) {
  const long fits = most_bytes / bytes;
  return all + (i % fits) * (long)bytes;
}
static void window(int bytes, int n) {
  MPI_Request requests[window_size];
  for (int done = 0; done < n; done += window_size) {
    for (int i = 0; i < window_size; ++i) {
      if (rank == 0) {
        write_out(place(out, i, bytes), bytes, i);
        MPI_Isend(place(out, i, bytes), bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &requests[i]);
      } else {
        MPI_Irecv(place(in, i, bytes), bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &requests[i]);
      }
    }
    MPI_Waitall(window_size, requests, MPI_STATUSES_IGNORE);
    if (rank == 0) MPI_Recv(NULL, 0, MPI_BYTE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Send(NULL, 0, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
  }
}

static void both(int bytes, int n) {
  for (int i = 0; i < n; ++i) {
    write_out(out, bytes, i);
    MPI_Sendrecv(out, bytes, MPI_BYTE, other, 1, in, bytes, MPI_BYTE, other, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
  }
}

static double round_us(void (*op)(int, int), int bytes, int n) {
  PMPI_Barrier(MPI_COMM_WORLD);
  const double begin = now_us();
  op(bytes, n);
  PMPI_Barrier(MPI_COMM_WORLD);
  return (now_us() - begin) / n;
}

static int by_value(const void* left, const void* right) {
  const double a = *(const double*)left, b = *(const double*)right;
  return a < b ? -1 : a > b;
}

static void measure(const char* name, void (*op)(int, int), int bytes) {
  double us[most_rounds];
  int n = 2 * window_size; /* even for ping-pong, whole windows */
  round_us(op, bytes, n);  /* pages are there, and the ranks have met */
  const double once = round_us(op, bytes, n);
  n = (int)(sample_us / once) / n * n + n;
  MPI_Bcast(&n, 1, MPI_INT, 0, MPI_COMM_WORLD);
  for (int i = 0; i < rounds; ++i) us[i] = round_us(op, bytes, n);
  qsort(us, (size_t)rounds, sizeof us[0], &by_value);
  if (rank == 0) printf("%s %d %.4f\n", name, bytes, us[rounds / 2]);
}

static const char* sizes = "8,131072,1048576,4194304";
static int level = MPI_THREAD_SINGLE;

static void read_option(const char* name, const char* value) {
  if (strcmp(name, "--sizes") == 0) sizes = value;
  if (strcmp(name, "--rounds") == 0) rounds = atoi(value);
  if (strcmp(name, "--sample-us") == 0) sample_us = atof(value);
  if (strcmp(name, "--level") == 0 && strcmp(value, "multiple") == 0) level = MPI_THREAD_MULTIPLE;
}

static void measure_all(void) {
  for (const char* at = sizes; at != NULL && *at != '\0'; at = strchr(at, ',')) {
    at += *at == ',';
    const int bytes = atoi(at);
    if (bytes < 1 || bytes > most_bytes) MPI_Abort(MPI_COMM_WORLD, 2);
    measure("pingpong", &pingpong, bytes);
    measure("window", &window, bytes);
    measure("both", &both, bytes);
  }
}

int main(int argc, char** argv) {
  int provided, ranks;
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "--write") == 0) writes = 1;
    if (i + 1 < argc) read_option(argv[i], argv[i + 1]);
  }
  if (rounds < 1 || rounds > most_rounds) return 2;
  MPI_Init_thread(&argc, &argv, level, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks != 2) MPI_Abort(MPI_COMM_WORLD, 2);
  other = 1 - rank;
  out = malloc(most_bytes);
  in = malloc(most_bytes);
  memset(out, 1, most_bytes);
  memset(in, 2, most_bytes);
  for (int i = 0; i < 4; ++i) MPI_Barrier(MPI_COMM_WORLD); /* from here on the drop-in serves */
  measure_all();
  free(out);
  free(in);
  MPI_Finalize();
  return 0;
}
