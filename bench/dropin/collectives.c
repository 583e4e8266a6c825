/* A benchmark of collectives that knows MPI alone: no header and no library of ropewalk. Buffers
 * come from malloc. Run it as it is and with the drop-in preloaded; compare.py does both in turns.
 *
 *   collectives [--op NAME,...] [--sizes BYTES,...] [--rounds N] [--sample-us T]
 *               [--loop tight|apart] [--memory malloc|static] [--type float|char]
 *
 * In a tight loop calls follow each other; apart, a barrier stands before each and the clock is
 * read around it, as in the OSU benchmarks. Static memory is the program's own, which no other rank
 * maps.
 *
 * Prints a line a case: op, bytes, microseconds of MPI_X, microseconds of PMPI_X in the same
 * process (the plain MPI when the drop-in is preloaded; else the same function). Medians over the
 * rounds; in each, a loop of calls that lasts the sample's time, of the slowest rank. */
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { most_sizes = 64, most_rounds = 1000, static_bytes = 1 << 22 };

struct Case;

struct Operation {
  const char* name;
  void (*calls)(const struct Case*, int profiled, int n);
};

struct Case {
  const struct Operation* operation;
  size_t bytes;
  float *send, *receive;
};

static int rank, ranks;
static int rounds = 20;
static double sample_us = 5000;
static int apart;
static MPI_Datatype type = MPI_FLOAT;
static size_t type_bytes = sizeof(float);
static float static_send[static_bytes / sizeof(float)];
static float static_receive[static_bytes / sizeof(float)];

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

/* One function an operation, so that a call costs what it costs in a program, and nothing of ours.
 */
#define OPERATION(lower, name, ...)                                     \
  static void lower(const struct Case* c, int profiled, int n) {        \
    int count = (int)(c->bytes / type_bytes);                           \
    (void)count;                                                        \
    if (profiled) {                                                     \
      for (int i = 0; i < n; ++i) P##name(__VA_ARGS__, MPI_COMM_WORLD); \
    } else {                                                            \
      for (int i = 0; i < n; ++i) name(__VA_ARGS__, MPI_COMM_WORLD);    \
    }                                                                   \
  }
OPERATION(allreduce, MPI_Allreduce, c->send, c->receive, count, type, MPI_SUM)
OPERATION(reduce, MPI_Reduce, c->send, c->receive, count, type, MPI_SUM, 0)
OPERATION(bcast, MPI_Bcast, c->send, count, type, 0)
OPERATION(alltoall, MPI_Alltoall, c->send, count, type, c->receive, count, type)
OPERATION(allgather, MPI_Allgather, c->send, count, type, c->receive, count, type)
OPERATION(gather, MPI_Gather, c->send, count, type, c->receive, count, type, 0)
OPERATION(scatter, MPI_Scatter, c->send, count, type, c->receive, count, type, 0)

static void barrier(const struct Case* c, int profiled, int n) {
  (void)c;
  for (int i = 0; i < n; ++i) (profiled ? PMPI_Barrier : MPI_Barrier)(MPI_COMM_WORLD);
}

/* The transpose of a 3-d FFT, as mpi4py-fft makes it: a cube of complex numbers is divided along
 * its first axis before, and along its second (x-y) or third (x-z) after, by subarrays at both
 * ends. */
enum { most_ranks = 256, number_bytes = 16 };

struct Transpose {
  size_t bytes;
  int axis;
  int counts[most_ranks], places[most_ranks];
  MPI_Datatype sent[most_ranks], received[most_ranks];
};

static void subarray_of(int n, int whole, int part, int at, MPI_Datatype* made) {
  const int sizes[3] = {whole == 0 ? n / ranks : n, whole == 1 ? n / ranks : n,
                        whole == 2 ? n / ranks : n};
  int extents[3], starts[3] = {0, 0, 0};
  memcpy(extents, sizes, sizeof sizes);
  extents[part] = n / ranks;
  starts[part] = at * (n / ranks);
  MPI_Type_create_subarray(3, sizes, extents, starts, MPI_ORDER_C, MPI_C_DOUBLE_COMPLEX, made);
  MPI_Type_commit(made);
}

/* The largest cube, divisible by the ranks, of which a rank has at most `bytes`. */
static int edge_of(size_t bytes) {
  int n = ranks;
  while ((size_t)(n + ranks) * (size_t)(n + ranks) * (size_t)(n + ranks) / (size_t)ranks *
             number_bytes <=
         bytes) {
    n += ranks;
  }
  return n;
}

static const struct Transpose* transpose_of(size_t bytes, int axis) {
  static struct Transpose kept;
  if (kept.bytes == bytes && kept.axis == axis) return &kept;
  for (int i = 0; i < ranks && kept.bytes > 0; ++i) {
    MPI_Type_free(&kept.sent[i]);
    MPI_Type_free(&kept.received[i]);
  }
  kept.bytes = bytes;
  kept.axis = axis;
  for (int i = 0; i < ranks; ++i) {
    kept.counts[i] = 1;
    kept.places[i] = 0;
    subarray_of(edge_of(bytes), 0, axis, i, &kept.sent[i]);
    subarray_of(edge_of(bytes), axis, 0, i, &kept.received[i]);
  }
  return &kept;
}

static void transposes(const struct Case* c, int axis, int profiled, int n) {
  const struct Transpose* t = transpose_of(c->bytes, axis);
  for (int i = 0; i < n; ++i) {
    (profiled ? PMPI_Alltoallw : MPI_Alltoallw)(c->send, t->counts, t->places, t->sent, c->receive,
                                                t->counts, t->places, t->received, MPI_COMM_WORLD);
  }
}
static void transpose_xy(const struct Case* c, int profiled, int n) {
  transposes(c, 1, profiled, n);
}
static void transpose_xz(const struct Case* c, int profiled, int n) {
  transposes(c, 2, profiled, n);
}

static const struct Operation operations[] = {
    {"allreduce", allreduce},       {"reduce", reduce},       {"bcast", bcast},
    {"alltoall", alltoall},         {"allgather", allgather}, {"gather", gather},
    {"scatter", scatter},           {"barrier", barrier},     {"transpose_xy", transpose_xy},
    {"transpose_xz", transpose_xz},
};

static const struct Operation* operation_of(const char* name) {
  for (size_t i = 0; i < sizeof operations / sizeof *operations; ++i) {
    if (strcmp(operations[i].name, name) == 0) return &operations[i];
  }
  fprintf(stderr, "--op: %s is none of them\n", name);
  exit(2);
}

static void call(const struct Case* c, int profiled) { c->operation->calls(c, profiled, 1); }

static double time_apart(const struct Case* c, int profiled, int iterations) {
  double sum = 0;
  for (int i = 0; i < iterations; ++i) {
    double start;
    (profiled ? PMPI_Barrier : MPI_Barrier)(MPI_COMM_WORLD);
    start = now_us();
    call(c, profiled);
    sum += now_us() - start;
  }
  return sum;
}

static double time_tight(const struct Case* c, int profiled, int iterations) {
  double start;
  PMPI_Barrier(MPI_COMM_WORLD);
  start = now_us();
  c->operation->calls(c, profiled, iterations);
  return now_us() - start;
}

/* Of the slowest rank; apart, where ranks leave the barrier one after the other, the mean of all.
 */
static double loop(const struct Case* c, int profiled, int iterations) {
  double own, all;
  call(c, profiled);
  own = apart ? time_apart(c, profiled, iterations) : time_tight(c, profiled, iterations);
  PMPI_Allreduce(&own, &all, 1, MPI_DOUBLE, apart ? MPI_SUM : MPI_MAX, MPI_COMM_WORLD);
  return all / iterations / (apart ? ranks : 1);
}

static int calibrate(const struct Case* c, int profiled) {
  int iterations = 1;
  for (;;) {
    double each = loop(c, profiled, iterations);
    double wanted = sample_us / each;
    if (each * iterations >= sample_us / 4 || iterations > 1000000) {
      return wanted < 1 ? 1 : (int)wanted;
    }
    iterations *= 8;
  }
}

static int ascending(const void* a, const void* b) {
  double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static int is(const struct Case* c, const char* op) { return strcmp(c->operation->name, op) == 0; }

/* 1 when what this rank received is right; the loop has left nothing of it. */
static int verified_floats(const struct Case* c) {
  size_t count = c->bytes / sizeof(float);
  float sum = (float)ranks * (float)(ranks - 1) / 2 + (float)ranks;
  size_t blocks = is(c, "alltoall") ? (size_t)ranks : 1;
  for (size_t i = 0; i < count * blocks; ++i) c->send[i] = (float)(rank + 1);
  for (size_t i = 0; i < count; ++i) c->receive[i] = -1;
  call(c, 0);
  for (size_t i = 0; i < count; ++i) {
    if (is(c, "bcast") && c->send[i] != 1) return 0;
    if (is(c, "allreduce") && c->receive[i] != sum) return 0;
    if (is(c, "reduce") && rank == 0 && c->receive[i] != sum) return 0;
    if ((is(c, "alltoall") || is(c, "allgather")) && c->receive[i] != 1) return 0;
  }
  return 1;
}

/* The same for characters. */
static int verified_chars(const struct Case* c) {
  signed char *send = (signed char*)c->send, *receive = (signed char*)c->receive;
  size_t blocks = is(c, "alltoall") ? (size_t)ranks : 1;
  signed char sum = (signed char)(ranks * (ranks - 1) / 2 + ranks);
  memset(send, rank + 1, c->bytes * blocks);
  memset(receive, -1, c->bytes);
  call(c, 0);
  for (size_t i = 0; i < c->bytes; ++i) {
    if (is(c, "bcast") && send[i] != 1) return 0;
    if (is(c, "allreduce") && receive[i] != sum) return 0;
    if (is(c, "reduce") && rank == 0 && receive[i] != sum) return 0;
    if ((is(c, "alltoall") || is(c, "allgather")) && receive[i] != 1) return 0;
  }
  return 1;
}

/* Against the MPI's own, byte for byte. */
static int verified_transpose(const struct Case* c) {
  char *send = (char*)c->send, *receive = (char*)c->receive, *own = malloc(c->bytes);
  int right;
  for (size_t i = 0; i < c->bytes; ++i) send[i] = (char)(i * 7 + (i >> 8) + (size_t)rank * 31);
  memset(receive, 0, c->bytes);
  c->operation->calls(c, 1, 1);
  memcpy(own, receive, c->bytes);
  memset(receive, 0, c->bytes);
  call(c, 0);
  right = memcmp(own, receive, c->bytes) == 0;
  free(own);
  return right;
}

static int verified(const struct Case* c) {
  if (c->operation->calls == transpose_xy || c->operation->calls == transpose_xz) {
    return verified_transpose(c);
  }
  return type_bytes == 1 ? verified_chars(c) : verified_floats(c);
}

static void measure(const struct Case* c) {
  static double times[2][most_rounds];
  int iterations[2], right = verified(c), all_right;
  for (int which = 0; which < 2; ++which) iterations[which] = calibrate(c, which);
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < 2; ++i) {
      int which = (i + round) % 2;
      times[which][round] = loop(c, which, iterations[which]);
    }
  }
  right = verified(c) && right;
  PMPI_Allreduce(&right, &all_right, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  for (int which = 0; which < 2; ++which) {
    qsort(times[which], (size_t)rounds, sizeof(double), ascending);
  }
  if (rank == 0) {
    printf("%s %zu %.4f %.4f %s\n", c->operation->name, c->bytes, times[0][rounds / 2],
           times[1][rounds / 2], all_right ? "right" : "WRONG");
    fflush(stdout);
  }
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

static size_t bytes_of(const char* text) {
  char* end;
  size_t bytes = strtoull(text, &end, 10);
  return *end == 'K' ? bytes << 10 : *end == 'M' ? bytes << 20 : bytes;
}

int main(int argc, char** argv) {
  char ops[256] = "allreduce,bcast,alltoall,barrier";
  char texts[512] = "4,16,64,256,1K,4K,16K,64K,256K,1M,4M,16M";
  size_t sizes[most_sizes], largest = 64;
  int number = 0, is_static = 0, is_char = 0;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (strcmp(argv[i], "--op") == 0) snprintf(ops, sizeof ops, "%s", argv[i + 1]);
    if (strcmp(argv[i], "--sizes") == 0) snprintf(texts, sizeof texts, "%s", argv[i + 1]);
    if (strcmp(argv[i], "--rounds") == 0) rounds = atoi(argv[i + 1]);
    if (strcmp(argv[i], "--sample-us") == 0) sample_us = atof(argv[i + 1]);
    if (strcmp(argv[i], "--loop") == 0) apart = strcmp(argv[i + 1], "apart") == 0;
    if (strcmp(argv[i], "--memory") == 0) is_static = strcmp(argv[i + 1], "static") == 0;
    if (strcmp(argv[i], "--type") == 0) is_char = strcmp(argv[i + 1], "char") == 0;
  }
  if (rounds < 1 || rounds > most_rounds) rounds = 20;
  for (char* text = strtok(texts, ","); text && number < most_sizes; text = strtok(NULL, ",")) {
    sizes[number] = bytes_of(text);
    if (sizes[number] > largest) largest = sizes[number];
    ++number;
  }
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  pin();
  if (is_char) type = MPI_CHAR;
  if (is_char) type_bytes = 1;
  if (is_static && largest * (size_t)ranks > static_bytes) {
    fprintf(stderr, "--memory static: %zu bytes a rank at most\n", (size_t)static_bytes / ranks);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  float* send = is_static ? static_send : malloc(largest * (size_t)ranks);
  float* receive = is_static ? static_receive : malloc(largest * (size_t)ranks);
  memset(send, 0, largest * (size_t)ranks);
  memset(receive, 0, largest * (size_t)ranks);
  for (char* op = strtok(ops, ","); op; op = strtok(NULL, ",")) {
    const struct Operation* operation = operation_of(op);
    int sizeless = operation->calls == barrier;
    for (int i = 0; i < (sizeless ? 1 : number); ++i) {
      struct Case one = {operation, sizeless ? 0 : sizes[i], send, receive};
      measure(&one);
    }
  }
  if (!is_static) free(send);
  if (!is_static) free(receive);
  MPI_Finalize();
  return 0;
}
