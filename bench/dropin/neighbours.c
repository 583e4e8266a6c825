/* Neighbourhood collectives and alltoallw by the drop-in (MPI_X) and by MPI itself (PMPI_X) in
 * turns, in one process and the same buffers. Knows MPI alone. Without the drop-in the two are the
 * same function.
 *
 *   neighbours [SECONDS]
 *
 * The grids are a ring of all ranks and the widest grid of two dimensions without periods. Prints,
 * for each case, the median of the slowest rank's time by PMPI_X in us, that by MPI_X, and the
 * median of their ratios, call by call. SECONDS: for each case, 2 where none is given. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { most_pairs = 20000, least_pairs = 15, most_blocks = 64 };

static int rank, ranks;

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

typedef struct {
  char what; /* a: neighbor_alltoall, g: neighbor_allgather, w: neighbor_alltoallw, t: alltoallw */
  MPI_Comm comm;
  int blocks, bytes;
  char *send, *receive;
  /* Columns of matrices of twice as many: runs of 64 bytes, or what there is. */
  int ones[most_blocks], places[most_blocks];
  MPI_Aint far_places[most_blocks];
  MPI_Datatype types[most_blocks];
} Case;

static double time_call(const Case* c, int profiled) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double started = now_us();
  switch (c->what) {
    case 'a':
      (profiled ? PMPI_Neighbor_alltoall : MPI_Neighbor_alltoall)(
          c->send, c->bytes, MPI_BYTE, c->receive, c->bytes, MPI_BYTE, c->comm);
      break;
    case 'g':
      (profiled ? PMPI_Neighbor_allgather : MPI_Neighbor_allgather)(
          c->send, c->bytes, MPI_BYTE, c->receive, c->bytes, MPI_BYTE, c->comm);
      break;
    case 'w':
      (profiled ? PMPI_Neighbor_alltoallw : MPI_Neighbor_alltoallw)(
          c->send, c->ones, c->far_places, c->types, c->receive, c->ones, c->far_places, c->types,
          c->comm);
      break;
    default:
      (profiled ? PMPI_Alltoallw : MPI_Alltoallw)(c->send, c->ones, c->places, c->types, c->receive,
                                                  c->ones, c->places, c->types, c->comm);
  }
  double mine = now_us() - started, slowest;
  PMPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return slowest;
}

static int ascending(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}
static double median(double* values, int count) {
  qsort(values, (size_t)count, sizeof *values, &ascending);
  return values[count / 2];
}

static void run(const char* name, Case* c, double seconds) {
  static double plain[most_pairs], ours[most_pairs], ratios[most_pairs];
  const int run = c->bytes < 64 ? c->bytes : 64;
  for (int k = 0; k < c->blocks; ++k) {
    c->ones[k] = 1;
    c->places[k] = 2 * k * c->bytes;
    c->far_places[k] = c->places[k];
    MPI_Type_vector(c->bytes / run, run, 2 * run, MPI_BYTE, &c->types[k]);
    MPI_Type_commit(&c->types[k]);
  }
  for (int i = 0; i < 5; ++i) time_call(c, i % 2);
  const double begin = now_us();
  int pairs = 0, goes_on = 1;
  while (goes_on) {
    /* Each comes first in every other pair. */
    for (int which = 0; which < 2; ++which) {
      const int profiled = (pairs + which) % 2;
      (profiled ? plain : ours)[pairs] = time_call(c, profiled);
    }
    ratios[pairs] = ours[pairs] / plain[pairs];
    ++pairs;
    goes_on = pairs < most_pairs && (pairs < least_pairs || now_us() - begin < 1e6 * seconds);
    PMPI_Bcast(&goes_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
  if (rank == 0) {
    printf("%-28s %8d  %10.1f %10.1f  %5.2f  (%d pairs)\n", name, c->bytes, median(plain, pairs),
           median(ours, pairs), median(ratios, pairs), pairs);
    fflush(stdout);
  }
  for (int k = 0; k < c->blocks; ++k) MPI_Type_free(&c->types[k]);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const double seconds = argc > 1 ? atof(argv[1]) : 2;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks > most_blocks) MPI_Abort(MPI_COMM_WORLD, 2);
  MPI_Comm ring, grid, all;
  const int around = 1;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &ranks, &around, 0, &ring);
  int extents[2] = {0, 0};
  const int open[2] = {0, 0};
  MPI_Dims_create(ranks, 2, extents);
  MPI_Cart_create(MPI_COMM_WORLD, 2, extents, open, 0, &grid);
  MPI_Comm_dup(MPI_COMM_WORLD, &all);
  const int sizes[] = {8, 512, 4096, 32768, 262144, 1 << 20};
  const size_t room = (size_t)2 * (size_t)(ranks > 4 ? ranks : 4) << 20;
  char* send = malloc(room);
  char* receive = malloc(room);
  memset(send, rank + 1, room);
  memset(receive, 0, room);
  if (rank == 0) printf("%-28s %8s  %10s %10s  ratio\n", "call", "bytes", "plain us", "ours us");
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; ++s) {
    Case c = {.bytes = sizes[s], .send = send, .receive = receive};
    const struct {
      const char* name;
      char what;
      MPI_Comm comm;
      int blocks;
    } cases[] = {
        {"neighbor_alltoall, ring", 'a', ring, 2},  {"neighbor_alltoall, grid", 'a', grid, 4},
        {"neighbor_allgather, grid", 'g', grid, 4}, {"neighbor_alltoallw, ring", 'w', ring, 2},
        {"neighbor_alltoallw, grid", 'w', grid, 4}, {"alltoallw", 't', all, ranks}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; ++k) {
      c.what = cases[k].what;
      c.comm = cases[k].comm;
      c.blocks = cases[k].blocks;
      run(cases[k].name, &c, seconds);
    }
  }
  free(send);
  free(receive);
  MPI_Comm_free(&ring);
  MPI_Comm_free(&grid);
  MPI_Comm_free(&all);
  MPI_Finalize();
  return 0;
}
