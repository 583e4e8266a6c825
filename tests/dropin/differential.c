/* Random collectives, each through MPI_X and through PMPI_X on the same data: with the drop-in
 * preloaded, PMPI_X is the plain MPI. Results must be the same bytes, in every place of the
 * buffers, also where nothing may be written; values are small integers, so that every order of
 * a sum gives the same.
 *
 *   differential [CASES [SEED]] */
#include "check.h"

enum { most_elements = 60000, guard = 64 };

static unsigned long long state = 1;

static unsigned roll(unsigned below) {
  state = state * 6364136223846793005ull + 1442695040888963407ull;
  return (unsigned)((state >> 33) % below);
}

struct Type {
  MPI_Datatype type;
  size_t extent;
  int arithmetic; /* 1: sums; 2: bits and logic, too; 0: no built-in operation */
};

static struct Type types[10];
static MPI_Op operations[12];
static int operations_number;
static MPI_Op user_sum, user_first;

/* Sums ints; also right for blocks of three ints, as an operation sees the type. */
static void sum_ints(void* in, void* inout, int* count, MPI_Datatype* type) {
  int bytes;
  PMPI_Type_size(*type, &bytes);
  for (int i = 0; i < *count * bytes / 4; ++i) ((int*)inout)[i] += ((int*)in)[i];
}

/* Not commutative: the lowest rank's operand stays. */
static void keep_first(void* in, void* inout, int* count, MPI_Datatype* type) {
  int bytes;
  PMPI_Type_size(*type, &bytes);
  memcpy(inout, in, (size_t)*count * (size_t)bytes);
}

static void make_types(void) {
  const struct Type all[] = {
      {MPI_INT, 4, 2},     {MPI_DOUBLE, 8, 1},   {MPI_FLOAT, 4, 1},         {MPI_BYTE, 1, 0},
      {MPI_INT64_T, 8, 2}, {MPI_UINT16_T, 2, 2}, {MPI_UNSIGNED_CHAR, 1, 2},
  };
  memcpy(types, all, sizeof all);
  types[7].extent = 12;
  MPI_Type_contiguous(3, MPI_INT, &types[7].type);
  types[8].extent = 16;
  MPI_Type_vector(2, 1, 3, MPI_INT, &types[8].type); /* int, gap of two, int */
  types[9].extent = 12;
  MPI_Type_create_resized(MPI_INT, 0, 12, &types[9].type);
  for (int i = 7; i < 10; ++i) MPI_Type_commit(&types[i].type);
  const MPI_Op built_in[] = {MPI_SUM, MPI_MAX, MPI_MIN, MPI_BAND, MPI_BOR, MPI_BXOR, MPI_LAND};
  memcpy(operations, built_in, sizeof built_in);
  operations_number = (int)(sizeof built_in / sizeof *built_in);
  MPI_Op_create(sum_ints, 1, &user_sum);
  MPI_Op_create(keep_first, 0, &user_first);
}

static void free_types(void) {
  for (int i = 7; i < 10; ++i) MPI_Type_free(&types[i].type);
  MPI_Op_free(&user_sum);
  MPI_Op_free(&user_first);
}

struct Comm {
  MPI_Comm comm;
  int rank, size;
};

/* One case, the same on all ranks of the communicator but for the data. */
struct Case {
  int what, count, root, in_place, way; /* way: 0 blocking, 1 nonblocking, 2 persistent, 3 _c */
  struct Type type;
  MPI_Op op;
};

static char *sent[2], *received[2];
static int counts[64], places[64], other_counts[64], other_places[64];
static size_t bytes_of_buffers;

static void fill(char* buffer, const struct Type* type, size_t bytes, unsigned seed) {
  for (size_t i = 0; i < bytes; ++i) buffer[i] = 0;
  if (type->type == MPI_DOUBLE) {
    for (size_t i = 0; i < bytes / 8; ++i) ((double*)buffer)[i] = (double)((i + seed) % 7);
  } else if (type->type == MPI_FLOAT) {
    for (size_t i = 0; i < bytes / 4; ++i) ((float*)buffer)[i] = (float)((i + seed) % 7);
  } else if (type->extent == 1) {
    for (size_t i = 0; i < bytes; ++i) buffer[i] = (char)((i * 3 + seed) % 11);
  } else {
    for (size_t i = 0; i < bytes / 4; ++i) ((int*)buffer)[i] = (int)((i * 5 + seed) % 13);
  }
}

typedef struct {
  const void* send;
  void* receive;
} Sides;

static int blocking(const struct Case* c, const struct Comm* o, Sides s, int plain) {
  MPI_Datatype t = c->type.type;
  int n = c->count;
  MPI_Comm m = o->comm;
#define CALL(name, ...) return plain ? P##name(__VA_ARGS__) : name(__VA_ARGS__)
  switch (c->what) {
    case 0:
      CALL(MPI_Allreduce, s.send, s.receive, n, t, c->op, m);
    case 1:
      CALL(MPI_Reduce, s.send, s.receive, n, t, c->op, c->root, m);
    case 2:
      CALL(MPI_Bcast, s.receive, n, t, c->root, m);
    case 3:
      CALL(MPI_Allgather, s.send, n, t, s.receive, n, t, m);
    case 4:
      CALL(MPI_Alltoall, s.send, n, t, s.receive, n, t, m);
    case 5:
      CALL(MPI_Gather, s.send, n, t, s.receive, n, t, c->root, m);
    case 6:
      CALL(MPI_Scatter, s.send, n, t, s.receive, n, t, c->root, m);
    case 7:
      CALL(MPI_Scan, s.send, s.receive, n, t, c->op, m);
    case 8:
      CALL(MPI_Exscan, s.send, s.receive, n, t, c->op, m);
    case 9:
      CALL(MPI_Reduce_scatter_block, s.send, s.receive, n, t, c->op, m);
    case 10:
      CALL(MPI_Reduce_scatter, s.send, s.receive, counts, t, c->op, m);
    case 11:
      CALL(MPI_Allgatherv, s.send, counts[o->rank], t, s.receive, counts, places, t, m);
    case 12:
      CALL(MPI_Gatherv, s.send, counts[o->rank], t, s.receive, counts, places, t, c->root, m);
    case 13:
      CALL(MPI_Scatterv, s.send, counts, places, t, s.receive, counts[o->rank], t, c->root, m);
    case 14:
      CALL(MPI_Alltoallv, s.send, counts, places, t, s.receive, other_counts, other_places, t, m);
    default:
      CALL(MPI_Barrier, m);
  }
}

static int nonblocking(const struct Case* c, const struct Comm* o, Sides s, int plain) {
  MPI_Datatype t = c->type.type;
  int n = c->count;
  MPI_Comm m = o->comm;
  MPI_Request request = MPI_REQUEST_NULL;
#undef CALL
#define CALL(name, ...)             \
  if (plain) {                      \
    P##name(__VA_ARGS__, &request); \
  } else {                          \
    name(__VA_ARGS__, &request);    \
  }                                 \
  break
  switch (c->what) {
    case 0:
      CALL(MPI_Iallreduce, s.send, s.receive, n, t, c->op, m);
    case 1:
      CALL(MPI_Ireduce, s.send, s.receive, n, t, c->op, c->root, m);
    case 2:
      CALL(MPI_Ibcast, s.receive, n, t, c->root, m);
    case 3:
      CALL(MPI_Iallgather, s.send, n, t, s.receive, n, t, m);
    case 4:
      CALL(MPI_Ialltoall, s.send, n, t, s.receive, n, t, m);
    case 5:
      CALL(MPI_Igather, s.send, n, t, s.receive, n, t, c->root, m);
    case 6:
      CALL(MPI_Iscatter, s.send, n, t, s.receive, n, t, c->root, m);
    case 7:
      CALL(MPI_Iscan, s.send, s.receive, n, t, c->op, m);
    case 8:
      CALL(MPI_Iexscan, s.send, s.receive, n, t, c->op, m);
    case 9:
      CALL(MPI_Ireduce_scatter_block, s.send, s.receive, n, t, c->op, m);
    case 10:
      CALL(MPI_Ireduce_scatter, s.send, s.receive, counts, t, c->op, m);
    case 11:
      CALL(MPI_Iallgatherv, s.send, counts[o->rank], t, s.receive, counts, places, t, m);
    case 12:
      CALL(MPI_Igatherv, s.send, counts[o->rank], t, s.receive, counts, places, t, c->root, m);
    case 13:
      CALL(MPI_Iscatterv, s.send, counts, places, t, s.receive, counts[o->rank], t, c->root, m);
    case 14:
      CALL(MPI_Ialltoallv, s.send, counts, places, t, s.receive, other_counts, other_places, t, m);
    default:
      CALL(MPI_Ibarrier, m);
  }
  return MPI_Wait(&request, MPI_STATUS_IGNORE);
}

#if MPI_VERSION >= 4
static int persistent(const struct Case* c, const struct Comm* o, Sides s, int plain) {
  MPI_Datatype t = c->type.type;
  int n = c->count;
  MPI_Comm m = o->comm;
  MPI_Info i = MPI_INFO_NULL;
  MPI_Request request = MPI_REQUEST_NULL;
  int result;
#undef CALL
#define CALL(name, ...)                \
  if (plain) {                         \
    P##name(__VA_ARGS__, i, &request); \
  } else {                             \
    name(__VA_ARGS__, i, &request);    \
  }                                    \
  break
  switch (c->what) {
    case 0:
      CALL(MPI_Allreduce_init, s.send, s.receive, n, t, c->op, m);
    case 1:
      CALL(MPI_Reduce_init, s.send, s.receive, n, t, c->op, c->root, m);
    case 2:
      CALL(MPI_Bcast_init, s.receive, n, t, c->root, m);
    case 3:
      CALL(MPI_Allgather_init, s.send, n, t, s.receive, n, t, m);
    case 4:
      CALL(MPI_Alltoall_init, s.send, n, t, s.receive, n, t, m);
    case 14:
      CALL(MPI_Alltoallv_init, s.send, counts, places, t, s.receive, other_counts, other_places, t,
           m);
    default:
      return blocking(c, o, s, plain);
  }
  MPI_Start(&request);
  result = MPI_Wait(&request, MPI_STATUS_IGNORE);
  /* Started again on what the first left; with a buffer in place that adds up twice. */
  if (!c->in_place) {
    MPI_Start(&request);
    result |= MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  MPI_Request_free(&request);
  return result;
}
#endif

#if MPI_VERSION >= 4 && !defined(OPEN_MPI)
static int large_count(const struct Case* c, const struct Comm* o, Sides s, int plain) {
  MPI_Datatype t = c->type.type;
  MPI_Count n = c->count;
  MPI_Comm m = o->comm;
#undef CALL
#define CALL(name, ...) return plain ? P##name(__VA_ARGS__) : name(__VA_ARGS__)
  switch (c->what) {
    case 0:
      CALL(MPI_Allreduce_c, s.send, s.receive, n, t, c->op, m);
    case 1:
      CALL(MPI_Reduce_c, s.send, s.receive, n, t, c->op, c->root, m);
    case 2:
      CALL(MPI_Bcast_c, s.receive, n, t, c->root, m);
    case 3:
      CALL(MPI_Allgather_c, s.send, n, t, s.receive, n, t, m);
    case 4:
      CALL(MPI_Alltoall_c, s.send, n, t, s.receive, n, t, m);
    case 9:
      CALL(MPI_Reduce_scatter_block_c, s.send, s.receive, n, t, c->op, m);
    default:
      return blocking(c, o, s, plain);
  }
}
#endif

static int call(const struct Case* c, const struct Comm* o, Sides sides, int plain) {
  if (c->way == 1) return nonblocking(c, o, sides, plain);
#if MPI_VERSION >= 4
  if (c->way == 2) return persistent(c, o, sides, plain);
#endif
#if MPI_VERSION >= 4 && !defined(OPEN_MPI)
  if (c->way == 3) return large_count(c, o, sides, plain);
#endif
  return blocking(c, o, sides, plain);
}

static int reduces(int what) { return what == 0 || what == 1 || (what >= 7 && what <= 10); }

static void choose_operation(struct Case* c) {
  unsigned pick = roll(10);
  if (c->type.type == MPI_INT && pick == 0) {
    c->op = user_first;
  } else if ((c->type.type == MPI_INT && pick == 1) || c->type.extent == 12) {
    c->type = types[pick % 2 ? 0 : 7];
    c->op = user_sum;
  } else {
    while (c->type.arithmetic == 0) c->type = types[roll(7)];
    c->op = operations[roll(c->type.arithmetic == 2 ? (unsigned)operations_number : 3)];
  }
}

static int may_be_in_place(int what) { return what != 2 && what < 15; }

static struct Case choose(const struct Comm* o) {
  struct Case c = {0, 0, 0, 0, 0, types[roll(10)], MPI_SUM};
  const int small[] = {0, 1, 2, 3, 7, 12, 100, 1000};
  int most = most_elements / o->size;
  c.what = (int)roll(16);
  c.count = roll(4) ? small[roll(8)] : 1 + (int)roll(roll(2) ? 8192 : (unsigned)most);
  c.root = (int)roll((unsigned)o->size);
  c.way = (int)roll(6);
  if (c.way > 3) c.way = 0;
  if (reduces(c.what)) choose_operation(&c);
  if (c.count > most) c.count = most;
  c.in_place = may_be_in_place(c.what) && roll(4) == 0;
  return c;
}

/* Blocks of the v calls: this rank's row and column of a table that all ranks make alike. */
static void choose_blocks(const struct Case* c, const struct Comm* o) {
  static int table[64][64];
  int here = 0, there = 0, symmetric = c->in_place;
  unsigned most = (unsigned)(c->count > 0 ? c->count : 1);
  for (int i = 0; i < o->size; ++i) {
    for (int j = 0; j < o->size; ++j) {
      table[i][j] = (symmetric && j < i) ? table[j][i] : (int)roll(most);
    }
  }
  for (int i = 0; i < o->size; ++i) {
    int all_alike = c->what != 14;
    counts[i] = all_alike ? table[0][i] : table[o->rank][i];
    other_counts[i] = table[i][o->rank];
    places[i] = here;
    other_places[i] = there;
    here += counts[i] + (c->what == 10 ? 0 : i % 2);
    there += other_counts[i] + i % 2;
  }
  if (symmetric && c->what == 14) memcpy(other_places, places, sizeof places);
}

/* The sides of a call; in place where the case says so and the standard has it at this rank. */
static Sides sides_of(const struct Case* c, const struct Comm* o, int which) {
  Sides s = {sent[which] + guard, received[which] + guard};
  int at_root = o->rank == c->root;
  if (!c->in_place) return s;
  if (c->what == 6 || c->what == 13) {
    if (at_root) s.receive = MPI_IN_PLACE;
  } else if (c->what == 1 || c->what == 5 || c->what == 12) {
    if (at_root) s.send = MPI_IN_PLACE;
  } else {
    s.send = MPI_IN_PLACE;
  }
  return s;
}

static void run(const struct Comm* o, int number) {
  struct Case c = choose(o);
  choose_blocks(&c, o);
  for (int which = 0; which < 2; ++which) {
    fill(sent[which], &c.type, bytes_of_buffers, (unsigned)(number + 3 * o->rank));
    fill(received[which], &c.type, bytes_of_buffers, (unsigned)(number + 5 * o->rank + 1));
  }
  for (int which = 0; which < 2; ++which) {
    int result = call(&c, o, sides_of(&c, o, which), which);
    if (result != MPI_SUCCESS) {
      fprintf(stderr, "case %d: error %d\n", number, result);
      ++check_failures;
    }
  }
  /* In place, a reduce-scatter may use the blocks of others, which are input, as it likes. */
  size_t compared = bytes_of_buffers;
  if (c.in_place && (c.what == 9 || c.what == 10)) {
    compared = guard + (size_t)(c.what == 9 ? c.count : counts[o->rank]) * c.type.extent;
  }
  if (memcmp(received[0], received[1], compared) != 0 || memcmp(sent[0], sent[1], compared) != 0) {
    fprintf(stderr,
            "case %d on rank %d of %d: what %d, way %d, count %d, extent %zu, root %d%s: results "
            "differ\n",
            number, o->rank, o->size, c.what, c.way, c.count, c.type.extent, c.root,
            c.in_place ? ", in place" : "");
    ++check_failures;
  }
}

int main(int argc, char** argv) {
  int cases = argc > 1 ? atoi(argv[1]) : 300;
  struct Comm world, other;
  MPI_Init(&argc, &argv);
  world.comm = MPI_COMM_WORLD;
  MPI_Comm_rank(world.comm, &world.rank);
  MPI_Comm_size(world.comm, &world.size);
  state = argc > 2 ? strtoull(argv[2], NULL, 10) : 20261;
  make_types();
  bytes_of_buffers = (size_t)most_elements * 16 + 64 * 1024 + 2 * guard;
  for (int which = 0; which < 2; ++which) {
    sent[which] = malloc(bytes_of_buffers);
    received[which] = malloc(bytes_of_buffers);
  }
  /* The same ranks in the opposite order, by a communicator of its own. */
  MPI_Comm_split(MPI_COMM_WORLD, 0, -world.rank, &other.comm);
  MPI_Comm_rank(other.comm, &other.rank);
  MPI_Comm_size(other.comm, &other.size);
  for (int number = 0; number < cases && check_failures < 5; ++number) {
    run(number % 3 == 2 ? &other : &world, number);
    PMPI_Allreduce(MPI_IN_PLACE, &check_failures, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  }
  MPI_Comm_free(&other.comm);
  free_types();
  for (int which = 0; which < 2; ++which) {
    free(sent[which]);
    free(received[which]);
  }
  return check_finish();
}
