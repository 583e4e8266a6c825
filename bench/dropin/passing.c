/* What a call costs that the drop-in intercepts and passes through: MPI_X and PMPI_X in blocks, in
 * turns, in one process. Knows MPI alone. Without the drop-in the two are the same function.
 *
 *   passing [ROUNDS]
 *
 * Prints, for each case, nanoseconds of PMPI_X, and what MPI_X takes besides: the median of the
 * differences of neighbouring blocks. Cases: on MPI_COMM_SELF; a user's operation, a derived
 * datatype, an intercommunicator, where there are two ranks or more. */
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { block = 2000, most_rounds = 2001 };

static int rank, ranks;

static double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

typedef int (*Allreduce)(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm);
typedef int (*Bcast)(void*, int, MPI_Datatype, int, MPI_Comm);
typedef int (*Barrier)(MPI_Comm);

struct Case {
  const char* name;
  char what; /* r: allreduce, b: bcast, w: barrier */
  MPI_Datatype type;
  MPI_Op op;
  MPI_Comm comm;
  int root;
};

static double time_block(const struct Case* c, int profiled) {
  static double in[8], out[8];
  Allreduce allreduce = profiled ? PMPI_Allreduce : MPI_Allreduce;
  Bcast bcast = profiled ? PMPI_Bcast : MPI_Bcast;
  Barrier barrier = profiled ? PMPI_Barrier : MPI_Barrier;
  double started;
  PMPI_Barrier(MPI_COMM_WORLD);
  started = now_ns();
  if (c->what == 'r') {
    for (int i = 0; i < block; ++i) allreduce(in, out, 1, c->type, c->op, c->comm);
  } else if (c->what == 'b') {
    for (int i = 0; i < block; ++i) bcast(in, 1, c->type, c->root, c->comm);
  } else {
    for (int i = 0; i < block; ++i) barrier(c->comm);
  }
  return (now_ns() - started) / block;
}

static int ascending(const void* a, const void* b) {
  double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static void measure(const struct Case* c, int rounds) {
  static double plain[most_rounds], added[most_rounds];
  time_block(c, 0);
  time_block(c, 1);
  for (int round = 0; round < rounds; ++round) {
    double with, without;
    if (round % 2) {
      with = time_block(c, 0);
      without = time_block(c, 1);
    } else {
      without = time_block(c, 1);
      with = time_block(c, 0);
    }
    plain[round] = without;
    added[round] = with - without;
  }
  qsort(plain, (size_t)rounds, sizeof(double), ascending);
  qsort(added, (size_t)rounds, sizeof(double), ascending);
  if (rank == 0) {
    printf("%-34s %9.1f %+8.1f\n", c->name, plain[rounds / 2], added[rounds / 2]);
    fflush(stdout);
  }
}

static void add(void* in, void* inout, int* count, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *count; ++i) ((double*)inout)[i] += ((double*)in)[i];
}

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

int main(int argc, char** argv) {
  int rounds = argc > 1 ? atoi(argv[1]) : 201;
  MPI_Op user;
  MPI_Datatype pair;
  MPI_Comm half, inter;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (rounds < 1 || rounds > most_rounds) rounds = 201;
  pin();
  MPI_Op_create(add, 1, &user);
  MPI_Type_vector(2, 1, 2, MPI_DOUBLE, &pair);
  MPI_Type_commit(&pair);
  struct Case alone[] = {
      {"allreduce on MPI_COMM_SELF", 'r', MPI_DOUBLE, MPI_SUM, MPI_COMM_SELF, 0},
      {"bcast on MPI_COMM_SELF", 'b', MPI_DOUBLE, MPI_SUM, MPI_COMM_SELF, 0},
      {"barrier on MPI_COMM_SELF", 'w', MPI_DOUBLE, MPI_SUM, MPI_COMM_SELF, 0},
  };
  for (size_t i = 0; i < sizeof alone / sizeof *alone; ++i) measure(&alone[i], rounds);
  if (ranks > 1) {
    int side = rank < ranks / 2;
    MPI_Comm_split(MPI_COMM_WORLD, side, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, side ? ranks / 2 : 0, 1, &inter);
    struct Case together[] = {
        {"allreduce with a user's operation", 'r', MPI_DOUBLE, user, MPI_COMM_WORLD, 0},
        {"bcast of a derived datatype", 'b', pair, MPI_SUM, MPI_COMM_WORLD, 0},
        {"barrier of an intercommunicator", 'w', MPI_DOUBLE, MPI_SUM, inter, 0},
        {"allreduce (taken, if not disabled)", 'r', MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, 0},
    };
    for (size_t i = 0; i < sizeof together / sizeof *together; ++i) measure(&together[i], rounds);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
  }
  MPI_Type_free(&pair);
  MPI_Op_free(&user);
  MPI_Finalize();
  return 0;
}
