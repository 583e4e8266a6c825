/* Random persistent collectives: each round of what MPI_X_init has set up must give, byte for byte,
 * what the blocking PMPI_X gives. Several are under way at a time, on several communicators,
 * together with messages, null requests and inactive ones, and are completed in all ways that MPI
 * has.
 *
 *   persistent [CASES [SEED [THREADS | levels]]]
 *
 * With THREADS, each rank has so many threads that do this at the same time, each on communicators
 * of its own, and one that sends large messages. What one thread has started another may complete.
 * With `levels`, every other rank alone has MPI_THREAD_MULTIPLE. */
#define _GNU_SOURCE
#include <pthread.h>

#include "check.h"

#if MPI_VERSION >= 4 || (defined OMPI_MAJOR_VERSION && OMPI_MAJOR_VERSION >= 5)

enum { most_ranks = 8, most_operations = 4, most_rounds = 4, kinds = 16, most_threads = 8 };

/* What is _Thread_local is each thread's own. */
static _Thread_local unsigned long long shared_state, own_state;
static unsigned from(unsigned long long* state, unsigned limit) {
  *state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
  return (unsigned)(*state >> 33) % limit;
}
/* The same on all ranks, and this rank's own. */
static unsigned below(unsigned limit) { return from(&shared_state, limit); }
static unsigned own_below(unsigned limit) { return from(&own_state, limit); }

typedef struct {
  int kind, root, in_place, count, ranks, rank;
  MPI_Comm comm;
  MPI_Datatype type;
  MPI_Op op;
  MPI_Aint extent;
  int counts[most_ranks], places[most_ranks];   /* blocks of each rank */
  int outs[most_ranks], out_places[most_ranks]; /* what this rank sends to each, in alltoallv */
  size_t room;
  char *send, *receive, *expected;
  MPI_Request request;
} Operation;

static _Thread_local MPI_Datatype gaps; /* two ints, and as much between and behind them */
static _Thread_local MPI_Op own_sum;
static void add(void* in, void* inout, int* count, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *count; ++i) ((int*)inout)[i] += ((int*)in)[i];
}

/* Sets up the collective, or makes the blocking call into `to`. */
static int call(Operation* o, int blocking, void* to) {
  const void* s = o->in_place ? MPI_IN_PLACE : o->send;
  const int n = o->count, root = o->root;
  const int at_root = o->rank == root;
  MPI_Datatype t = o->type;
  MPI_Comm c = o->comm;
#define RUN(name, ...) \
  (blocking ? PMPI_##name(__VA_ARGS__) : MPI_##name##_init(__VA_ARGS__, MPI_INFO_NULL, &o->request))
  switch (o->kind) {
    case 0:
      return RUN(Barrier, c);
    case 1:
      return RUN(Bcast, to, n, t, root, c);
    case 2:
      return RUN(Reduce, o->in_place && !at_root ? to : s, to, n, t, o->op, root, c);
    case 3:
      return RUN(Allreduce, s, to, n, t, o->op, c);
    case 4:
      return RUN(Scan, s, to, n, t, o->op, c);
    case 5:
      return RUN(Exscan, s, to, n, t, o->op, c);
    case 6:
      return RUN(Reduce_scatter, s, to, o->counts, t, o->op, c);
    case 7:
      return RUN(Reduce_scatter_block, s, to, n, t, o->op, c);
    case 8:
      return RUN(Allgather, s, n, t, to, n, t, c);
    case 9:
      return RUN(Allgatherv, s, o->counts[o->rank], t, to, o->counts, o->places, t, c);
    case 10:
      return RUN(Gather, at_root ? s : o->send, n, t, to, n, t, root, c);
    case 11:
      return RUN(Gatherv, at_root ? s : o->send, o->counts[o->rank], t, to, o->counts, o->places, t,
                 root, c);
    case 12:
      return RUN(Scatter, o->send, n, t, o->in_place && at_root ? MPI_IN_PLACE : to, n, t, root, c);
    case 13:
      return RUN(Scatterv, o->send, o->counts, o->places, t,
                 o->in_place && at_root ? MPI_IN_PLACE : to, o->counts[o->rank], t, root, c);
    case 14:
      return RUN(Alltoall, s, n, t, to, n, t, c);
    default:
      return RUN(Alltoallv, s, o->outs, o->out_places, t, to, o->counts, o->places, t, c);
  }
#undef RUN
}

/* What rank `i` sends to rank `k` in an alltoallv, as both of them know. */
static int between(unsigned seed, int i, int k, int in_place, int most) {
  const unsigned a = (unsigned)(in_place && i > k ? k : i),
                 b = (unsigned)(in_place && i > k ? i : k);
  unsigned mixed = seed * 2654435761U + a * 40503U + b * 9973U;
  mixed ^= mixed >> 15;
  mixed *= 2246822519U;
  return (int)((mixed >> 8) % (unsigned)most);
}

static void draw(Operation* o, MPI_Comm comm) {
  const int sizes[] = {0, 1, 3, 6, 40, 1000, 9000};
  memset(o, 0, sizeof *o);
  o->comm = comm;
  MPI_Comm_size(comm, &o->ranks);
  MPI_Comm_rank(comm, &o->rank);
  o->kind = (int)below(kinds);
  o->root = (int)below((unsigned)o->ranks);
  o->in_place = below(4) == 0;
  o->count = sizes[below(7)];
  const int reduces = o->kind >= 2 && o->kind <= 7;
  if (reduces && below(20) == 0) o->count = 200000; /* which MPI serves */
  const MPI_Datatype types[] = {MPI_INT, MPI_DOUBLE, MPI_BYTE, gaps};
  o->type = reduces ? MPI_INT : types[below(4)];
  const MPI_Op ops[] = {MPI_SUM, MPI_MAX, MPI_BXOR, own_sum};
  o->op = ops[below(4)];
  const unsigned seed = below(1U << 30);
  int at = 0, out_at = 0;
  for (int k = 0; k < o->ranks; ++k) {
    const int most = o->count + 1;
    o->counts[k] =
        o->kind == 15 ? between(seed, k, o->rank, o->in_place, most) : between(seed, k, 0, 0, most);
    o->outs[k] = between(seed, o->rank, k, o->in_place, most);
    /* A gap between blocks, but where the standard has none. */
    o->places[k] = at;
    o->out_places[k] = out_at;
    at += o->counts[k] + 1;
    out_at += o->outs[k] + 1;
  }
  MPI_Aint lower;
  MPI_Type_get_extent(o->type, &lower, &o->extent);
  const size_t elements = (size_t)(o->count + 1) * (size_t)o->ranks + 3;
  o->room = elements * (size_t)o->extent;
  o->send = malloc(o->room);
  o->receive = malloc(o->room);
  o->expected = malloc(o->room);
  o->request = MPI_REQUEST_NULL;
}

static void fill(Operation* o) {
  const unsigned first = own_below(100);
  for (size_t i = 0; i < o->room; ++i) {
    o->send[i] = (char)(i % 4 == 0 ? first + i / 4 % 50 : 0);
    o->receive[i] = (char)(i % 4 == 0 ? first + i / 4 % 40 : 0);
  }
  memcpy(o->expected, o->receive, o->room);
}

static int is_served(const Operation* o) {
  const int reduces = o->kind >= 2 && o->kind <= 7;
  return o->ranks > 1 && !(reduces && (o->op == own_sum || o->count > 9000));
}

typedef struct {
  MPI_Request at[2 * most_operations + 4];
  int number;
} Requests;

static void test_until(Requests* r, int way) {
  int flag = 0, index, number, indices[2 * most_operations + 4];
  MPI_Status status;
  for (int round = 0; !flag; ++round) {
    if (way == 4) {
      CHECK_CALL(MPI_Testall(r->number, r->at, &flag, MPI_STATUSES_IGNORE));
    } else if (way == 5) {
      CHECK_CALL(MPI_Testany(r->number, r->at, &index, &flag, &status));
      flag = flag && index == MPI_UNDEFINED;
    } else {
      CHECK_CALL(MPI_Testsome(r->number, r->at, &number, indices, MPI_STATUSES_IGNORE));
      flag = number == MPI_UNDEFINED;
    }
  }
}

static void wait_each(Requests* r, int tests) {
  const int first = (int)own_below((unsigned)r->number);
  for (int i = 0; i < r->number; ++i) {
    MPI_Request* one = &r->at[(first + i) % r->number];
    MPI_Status status;
    int flag = !tests;
    while (!flag) {
      MPI_Request_get_status(*one, &flag, &status);
      if (flag) CHECK_CALL(MPI_Test(one, &flag, &status));
      CHECK(!tests || flag || *one != MPI_REQUEST_NULL);
    }
    if (!tests) CHECK_CALL(MPI_Wait(one, own_below(2) ? &status : MPI_STATUS_IGNORE));
  }
}

static void complete(Requests* r, int served) {
  /* MPICH 5.0.2 by itself never completes an array with an inactive persistent collective. */
  const int ways[] = {0, 2, 3, 5, 6, 7, 1, 4};
  const int way = ways[own_below(served ? 8 : 6)];
  int index = 0, number, indices[2 * most_operations + 4];
  MPI_Status statuses[2 * most_operations + 4];
  switch (way) {
    case 0:
      wait_each(r, 0);
      break;
    case 1:
      CHECK_CALL(MPI_Waitall(r->number, r->at, statuses));
      break;
    case 2:
      while (index != MPI_UNDEFINED) {
        CHECK_CALL(MPI_Waitany(r->number, r->at, &index, statuses));
      }
      break;
    case 3:
      do {
        CHECK_CALL(MPI_Waitsome(r->number, r->at, &number, indices, statuses));
      } while (number != MPI_UNDEFINED);
      break;
    case 7:
      wait_each(r, 1);
      break;
    default:
      test_until(r, way);
  }
}

static int threads;

typedef struct {
  Requests* requests;
  int served;
  unsigned long long state;
} HandedOver;

static void* complete_here(void* given) {
  const HandedOver* handed = given;
  own_state = handed->state;
  complete(handed->requests, handed->served);
  return NULL;
}

/* Where there are several threads, every other time by one that has not started them. */
static void complete_by_any(Requests* r, int served) {
  pthread_t other;
  HandedOver handed = {r, served, own_state};
  if (threads == 0 || own_below(2)) {
    complete(r, served);
    return;
  }
  CHECK(pthread_create(&other, NULL, complete_here, &handed) == 0);
  pthread_join(other, NULL);
}

static int world_rank, world_size;
static int rank_behind(void) { return (world_rank + 1) % world_size; }
static int rank_before(void) { return (world_rank + world_size - 1) % world_size; }

/* A message around the ring of all ranks goes on beside the collectives. */
static _Thread_local MPI_Comm world; /* of all ranks */
static _Thread_local int ring_in, ring_out;
static void add_ring(Requests* r, int round) {
  ring_out = world_rank * 100 + round;
  ring_in = -1;
  MPI_Irecv(&ring_in, 1, MPI_INT, rank_before(), 7, world, &r->at[r->number++]);
  MPI_Isend(&ring_out, 1, MPI_INT, rank_behind(), 7, world, &r->at[r->number++]);
}

/* Starts the collectives of a round, whose bits are set. */
static void start(const Operation* all, int number, unsigned started) {
  MPI_Request starting[most_operations];
  int starts = 0;
  for (int i = 0; i < number; ++i) {
    if (started >> i & 1) starting[starts++] = all[i].request;
  }
  if (below(2)) {
    CHECK_CALL(MPI_Startall(starts, starting));
  } else {
    for (int i = 0; i < starts; ++i) CHECK_CALL(MPI_Start(&starting[i]));
  }
}

static void check(const Operation* o, MPI_Request after) {
  CHECK(after == o->request);
  if (memcmp(o->receive, o->expected, o->room) != 0) {
    fprintf(stderr, "kind %d, %d elements, in place %d\n", o->kind, o->count, o->in_place);
  }
  CHECK(memcmp(o->receive, o->expected, o->room) == 0);
  /* It is inactive, which is complete, with an empty status. */
  int flag = 0, bytes = -1;
  MPI_Status status;
  CHECK_CALL(MPI_Test(&after, &flag, &status));
  CHECK(flag && after == o->request);
  MPI_Get_count(&status, MPI_BYTE, &bytes);
  CHECK(status.MPI_SOURCE == MPI_ANY_SOURCE && status.MPI_TAG == MPI_ANY_TAG && bytes == 0);
}

/* Starts those that this round has, and completes them. */
static void run(Operation* all, int number, int round) {
  const unsigned started = 1 + below((1U << number) - 1);
  Requests r = {.number = 0};
  int served = world_size > 1;
  for (int i = 0; i < number; ++i) {
    fill(&all[i]);
    if (started >> i & 1) CHECK_CALL(call(&all[i], 1, all[i].expected));
    served = served && is_served(&all[i]);
    r.at[r.number++] = all[i].request;
  }
  start(all, number, started);
  const int has_ring = below(2) != 0;
  if (has_ring) add_ring(&r, round);
  r.at[r.number++] = MPI_REQUEST_NULL;
  /* Rank 0 completes nothing before the last rank has completed all. */
  const int token = !has_ring && world_size > 1 && below(3) == 0;
  if (token && world_rank == 0) {
    MPI_Recv(NULL, 0, MPI_INT, world_size - 1, 8, world, MPI_STATUS_IGNORE);
  }
  complete_by_any(&r, served);
  if (token && world_rank == world_size - 1) MPI_Send(NULL, 0, MPI_INT, 0, 8, world);
  if (has_ring) CHECK(ring_in == rank_before() * 100 + round);
  for (int i = 0; i < number; ++i) check(&all[i], r.at[i]);
}

/* Sets up a few, carries out some rounds, and frees them. */
static void run_case(MPI_Datatype resized) {
  own_state = shared_state + (unsigned)world_rank * 77773U + 5;
  MPI_Type_dup(resized, &gaps);
  MPI_Op_create(&add, 1, &own_sum);
  MPI_Comm comms[2] = {world, MPI_COMM_NULL};
  const int split = 1 + (int)below(2);
  MPI_Comm_split(world, world_rank % split, (int)below(2) ? world_rank : -world_rank, &comms[1]);
  Operation all[most_operations];
  const int number = 1 + (int)below(most_operations);
  for (int i = 0; i < number; ++i) {
    const int which = (int)below(2);
    /* Ranks of either half draw the same, whatever its size. */
    const unsigned long long state = shared_state;
    draw(&all[i], comms[which]);
    shared_state = state + 99991ULL * (unsigned)(i + 1);
    CHECK_CALL(call(&all[i], 0, all[i].receive));
  }
  /* All may be gone before the last round. */
  MPI_Type_free(&gaps);
  MPI_Type_dup(resized, &gaps);
  const int rounds = 1 + (int)below(most_rounds);
  for (int i = 0; i < number; ++i) {
    if (all[i].type != MPI_INT && all[i].type != MPI_DOUBLE && all[i].type != MPI_BYTE) {
      all[i].type = gaps;
    }
  }
  for (int round = 0; round < rounds; ++round) run(all, number, round);
  for (int i = 0; i < number; ++i) {
    CHECK_CALL(MPI_Request_free(&all[i].request));
    CHECK(all[i].request == MPI_REQUEST_NULL);
    free(all[i].send);
    free(all[i].receive);
    free(all[i].expected);
  }
  MPI_Op_free(&own_sum);
  MPI_Type_free(&gaps);
  MPI_Comm_free(&comms[1]);
}

typedef struct {
  MPI_Comm world;
  int cases;
  unsigned long long seed;
  MPI_Datatype resized;
} Part;

static void* run_cases(void* given) {
  const Part* part = given;
  world = part->world;
  shared_state = part->seed;
  for (int i = 0; i < part->cases; ++i) run_case(part->resized);
  return NULL;
}

/* Large messages go around the ring meanwhile. */
static void* exchange(void* given) {
  const Part* part = given;
  enum { bytes = 200000, times = 10 };
  char *out = malloc(bytes), *in = malloc(bytes);
  for (int i = 0; i < times * part->cases; ++i) {
    MPI_Request both[2];
    memset(out, i % 50 + world_rank, bytes);
    MPI_Irecv(in, bytes, MPI_CHAR, rank_before(), 9, part->world, &both[0]);
    MPI_Isend(out, bytes, MPI_CHAR, rank_behind(), 9, part->world, &both[1]);
    CHECK_CALL(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
    CHECK(in[0] == i % 50 + rank_before() && in[bytes - 1] == in[0]);
  }
  free(out);
  free(in);
  return NULL;
}

/* Each thread has a communicator of its own, as have the messages. */
static void run_threads(Part part) {
  Part parts[most_threads + 1];
  pthread_t started[most_threads + 1];
  for (int i = 0; i <= threads; ++i) {
    parts[i] = part;
    parts[i].seed += (unsigned)i * 1000003ULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &parts[i].world);
  }
  for (int i = 0; i <= threads; ++i) {
    pthread_create(&started[i], NULL, i < threads ? run_cases : exchange, &parts[i]);
  }
  for (int i = 0; i <= threads; ++i) pthread_join(started[i], NULL);
  for (int i = 0; i <= threads; ++i) MPI_Comm_free(&parts[i].world);
}

/* Ranks may have asked for different levels. */
static int wanted_level(const char* way) {
  const char* rank =
      getenv("PMI_RANK") != NULL ? getenv("PMI_RANK") : getenv("OMPI_COMM_WORLD_RANK");
  if (strcmp(way, "levels") != 0) return threads > 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
  return rank != NULL && atoi(rank) % 2 == 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
}

int main(int argc, char** argv) {
  int provided;
  const char* way = argc > 3 ? argv[3] : "";
  threads = atoi(way);
  if (threads > most_threads) threads = most_threads;
  MPI_Init_thread(&argc, &argv, wanted_level(way), &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world_size);
  if (threads > 0 && provided < MPI_THREAD_MULTIPLE) {
    MPI_Finalize();
    return 77; /* skipped: this MPI has none */
  }
  Part all = {MPI_COMM_WORLD, argc > 1 ? atoi(argv[1]) : 50,
              argc > 2 ? strtoull(argv[2], NULL, 10) : 1, MPI_DATATYPE_NULL};
  MPI_Type_vector(2, 1, 2, MPI_INT, &gaps);
  MPI_Type_create_resized(gaps, 0, 16, &all.resized);
  MPI_Type_commit(&all.resized);
  MPI_Type_free(&gaps);
  if (threads > 0) {
    check_warm(MPI_COMM_WORLD); /* from here on messages go through memory */
    run_threads(all);
  } else {
    run_cases(&all);
  }
  MPI_Type_free(&all.resized);
  return check_finish();
}

#else
int main(void) { return 77; } /* skipped: this MPI has none */
#endif
