// Compares nonblocking collectives of an unchanged program, served by the drop-in (MPI_X) and by
// MPI alone (PMPI_X). Several are under way at once, between blocking ones and messages. Argument 1
// is the number of cases; `single` as argument 2 asks for one thread.
#ifdef ROPEWALK_TEST_ABI
#include <mpi_abi.h>
#else
#include <mpi.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { most = 60000, under_way = 4 };

static unsigned long long state = 12345;
static unsigned below(unsigned limit) {
  state = state * 6364136223846793005ULL + 1442695040888963407ULL;
  return (unsigned)(state >> 33) % limit;
}

static int ranks, rank, failures;
static double *sent[under_way], *got[under_way], *expected[under_way];

// A ring whose neighbours are two, or a graph in which a rank is its own neighbour, and twice that
// of the next.
static MPI_Comm ring, graph;
static void make_topologies(void) {
  const int period = 1, next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
  const int sources[] = {before, before, rank}, destinations[] = {next, next, rank};
  const int weights[] = {1, 1, 1};
  MPI_Cart_create(MPI_COMM_WORLD, 1, &ranks, &period, 0, &ring);
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 3, sources, weights, 3, destinations, weights,
                                 MPI_INFO_NULL, 0, &graph);
  for (int i = 0; i < 3; ++i) {
    MPI_Barrier(ring);
    MPI_Barrier(graph);
  }
}

// The blocks of an exchange; a type with gaps has all elements of one. They stay as long as the
// call.
typedef struct {
  int n, counts[8], places[8], byte_places[8], ones[8], full[8], gap_byte_places[8];
  MPI_Aint far_places[8], gap_places[8], element_places[8];
  MPI_Count large[8], large_full[8];
  MPI_Datatype gaps, gap_types[8], types[8];
} Blocks;

static void lay_out(Blocks* b, int blocks, int n) {
  b->n = n;
  MPI_Type_vector(n, 1, 2, MPI_DOUBLE, &b->gaps);
  MPI_Type_commit(&b->gaps);
  for (int i = 0; i < blocks; ++i) {
    // Those of one pair of ranks have one length.
    b->large[i] = b->counts[i] = i < 2 ? n : n / 2;
    b->large_full[i] = b->full[i] = n;
    b->ones[i] = n > 0;
    b->element_places[i] = b->places[i] = (blocks - 1 - i) * n;
    b->far_places[i] = b->byte_places[i] = 8 * b->places[i];
    b->gap_places[i] = b->gap_byte_places[i] = 16 * b->places[i];
    b->gap_types[i] = b->gaps;
    b->types[i] = MPI_DOUBLE;
  }
}

#if MPI_VERSION >= 4
static void start_large(int kind, const Blocks* b, const double* s, double* r, MPI_Comm on,
                        MPI_Request* ours) {
  const MPI_Datatype d = MPI_DOUBLE;
  if (kind == 0) MPI_Ineighbor_allgather_c(s, b->n, d, r, b->n, d, on, ours);
  if (kind == 1) {
    MPI_Ineighbor_allgatherv_c(s, b->n, d, r, b->large_full, b->element_places, d, on, ours);
  }
  if (kind == 2) MPI_Ineighbor_alltoall_c(s, b->n, d, r, b->n, d, on, ours);
  if (kind == 3) {
    MPI_Ineighbor_alltoallv_c(s, b->large, b->element_places, d, r, b->large, b->element_places, d,
                              on, ours);
  }
}
#endif

// Kinds of exchanges: among neighbours, and alltoallw.
static void start_exchange(int kind, int k, int count, MPI_Request* ours, MPI_Request* theirs) {
  static Blocks all[under_way];
  const MPI_Comm on = count % 2 ? ring : graph, world = MPI_COMM_WORLD;
  const int neighbours = on == ring ? 2 : 3;
  Blocks* b = &all[k];
  lay_out(b, kind == 5 ? ranks : neighbours, count / (kind == 5 ? ranks : 3) / 2);
  const MPI_Datatype d = MPI_DOUBLE;
  const double* s = sent[k];
  const int n = b->n;
#if MPI_VERSION >= 4
  if (count / 2 % 2 && kind < 4) {
    start_large(kind, b, s, got[k], on, ours);
    ours = NULL;
  }
#endif
#define BOTH(name, from, to, comm)                       \
  if (ours) MPI_##name(s, from, got[k], to, comm, ours); \
  PMPI_##name(s, from, expected[k], to, comm, theirs)
#define TWO(...) __VA_ARGS__
  switch (kind) {
    case 0:
      BOTH(Ineighbor_allgather, TWO(n, d), TWO(n, d), on);
      break;
    case 1:
      BOTH(Ineighbor_allgatherv, TWO(n, d), TWO(b->full, b->places, d), on);
      break;
    case 2:
      BOTH(Ineighbor_alltoall, TWO(n, d), TWO(n, d), on);
      break;
    case 3:
      BOTH(Ineighbor_alltoallv, TWO(b->counts, b->places, d), TWO(b->counts, b->places, d), on);
      break;
    case 4:
      BOTH(Ineighbor_alltoallw, TWO(b->ones, b->gap_places, b->gap_types),
           TWO(b->full, b->far_places, b->types), on);
      break;
    default:
      BOTH(Ialltoallw, TWO(b->ones, b->gap_byte_places, b->gap_types),
           TWO(b->full, b->byte_places, b->types), world);
  }
#undef TWO
#undef BOTH
  MPI_Type_free(&b->gaps);
}

static void start(int kind, int k, int count, int root, MPI_Request* ours, MPI_Request* theirs) {
  const MPI_Comm world = MPI_COMM_WORLD;
  MPI_Datatype pair;
  if (kind >= 6) {
    start_exchange(kind - 6, k, count, ours, theirs);
    return;
  }
  switch (kind) {
    case 0:
      MPI_Iallreduce(sent[k], got[k], count, MPI_DOUBLE, MPI_SUM, world, ours);
      PMPI_Iallreduce(sent[k], expected[k], count, MPI_DOUBLE, MPI_SUM, world, theirs);
      break;
    case 1:
      MPI_Ireduce(sent[k], got[k], count, MPI_DOUBLE, MPI_MAX, root, world, ours);
      PMPI_Ireduce(sent[k], expected[k], count, MPI_DOUBLE, MPI_MAX, root, world, theirs);
      break;
    case 2:  // in place, of a type that is freed at once
      memcpy(got[k], sent[k], sizeof(double) * most);
      memcpy(expected[k], sent[k], sizeof(double) * most);
      MPI_Type_vector(2, 1, 2, MPI_DOUBLE, &pair);
      MPI_Type_commit(&pair);
      MPI_Ibcast(got[k], count / 3, pair, root, world, ours);
      PMPI_Ibcast(expected[k], count / 3, pair, root, world, theirs);
      MPI_Type_free(&pair);
      break;
    case 3:
      MPI_Iallgather(sent[k], count / ranks, MPI_DOUBLE, got[k], count / ranks, MPI_DOUBLE, world,
                     ours);
      PMPI_Iallgather(sent[k], count / ranks, MPI_DOUBLE, expected[k], count / ranks, MPI_DOUBLE,
                      world, theirs);
      break;
    case 4:
      MPI_Ialltoall(sent[k], count / ranks, MPI_DOUBLE, got[k], count / ranks, MPI_DOUBLE, world,
                    ours);
      PMPI_Ialltoall(sent[k], count / ranks, MPI_DOUBLE, expected[k], count / ranks, MPI_DOUBLE,
                     world, theirs);
      break;
    default:
      MPI_Ireduce_scatter_block(sent[k], got[k], count / ranks, MPI_DOUBLE, MPI_SUM, world, ours);
      PMPI_Ireduce_scatter_block(sent[k], expected[k], count / ranks, MPI_DOUBLE, MPI_SUM, world,
                                 theirs);
  }
}

// What blocks waits for nothing that only the end of those under way would bring.
static void call_in_between(void) {
  int sum = 0, one = 1, from = -1;
  if (below(2)) {
    MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % ranks, 7, &from, 1, MPI_INT, MPI_ANY_SOURCE, 7,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    failures += from != (rank + ranks - 1) % ranks;
  }
  if (below(2)) {
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    failures += sum != ranks;
  }
  if (below(2)) {  // on a communicator that may have some under way
    int around[2] = {-1, -1};
    MPI_Neighbor_allgather(&rank, 1, MPI_INT, around, 1, MPI_INT, ring);
    failures += around[0] != (rank + ranks - 1) % ranks || around[1] != (rank + 1) % ranks;
  }
}

static void complete(int number, MPI_Request* requests) {
  switch (below(3)) {
    case 0:
      MPI_Waitall(number, requests, MPI_STATUSES_IGNORE);
      break;
    case 1:
      for (int k = number - 1; k >= 0; --k) MPI_Wait(requests + k, MPI_STATUS_IGNORE);
      break;
    default:
      for (int done = 0; !done;) MPI_Testall(number, requests, &done, MPI_STATUSES_IGNORE);
  }
}

int main(int argc, char** argv) {
  int level;
  const int single = argc > 2 && strcmp(argv[2], "single") == 0;
  MPI_Init_thread(&argc, &argv, single ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int cases = argc > 1 ? atoi(argv[1]) : 50;
  for (int k = 0; k < under_way; ++k) {
    sent[k] = malloc(sizeof(double) * most);
    got[k] = malloc(sizeof(double) * most);
    expected[k] = malloc(sizeof(double) * most);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  make_topologies();
  for (int test = 0; test < cases; ++test) {
    MPI_Request requests[2 * under_way];
    int kinds[under_way];
    const int number = 1 + (int)below(under_way);
    for (int k = 0; k < number; ++k) {
      for (int i = 0; i < most; ++i) sent[k][i] = (test + i * (rank + 1) + k) % 1000;
      for (int i = 0; i < most; ++i) got[k][i] = expected[k][i] = -1;
      kinds[k] = (int)below(12);
      const int count = (int)(below(2) ? below(most) : below(300));
      start(kinds[k], k, count, (int)below((unsigned)ranks), requests + 2 * k,
            requests + 2 * k + 1);
    }
    call_in_between();
    complete(2 * number, requests);
    for (int k = 0; k < number; ++k) {
      if (memcmp(got[k], expected[k], sizeof(double) * most) == 0) continue;
      ++failures;
      fprintf(stderr, "rank %d, case %d: nonblocking collective %d differs\n", rank, test,
              kinds[k]);
    }
  }
  MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("nonblocking: %d cases, %d failures\n", cases, failures);
  MPI_Comm_free(&ring);
  MPI_Comm_free(&graph);
  MPI_Finalize();
  return failures != 0;
}
