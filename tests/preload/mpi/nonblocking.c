// Compares nonblocking collectives of an unchanged program, served by the drop-in (MPI_X) and by
// MPI alone (PMPI_X). Several are under way at once, between blocking ones and messages. Argument 1
// is the number of cases.
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

// Kinds of exchanges: among neighbours, and alltoallw. Blocks of one pair of ranks have one length.
static void start_exchange(int kind, int k, int count, MPI_Request* ours, MPI_Request* theirs) {
  const MPI_Comm on = count % 2 ? ring : graph;
  const int n = count / (kind == 5 ? ranks : 3) / 2, blocks = kind == 5    ? ranks
                                                              : on == ring ? 2
                                                                           : 3;
  // They stay as long as the call.
  static int all_ints[under_way][6][8];
  static MPI_Aint all_places[under_way][2][8];
  static MPI_Datatype all_types[under_way][2][8];
  int *counts = all_ints[k][0], *places = all_ints[k][1], *byte_places = all_ints[k][2];
  int *ones = all_ints[k][3], *full = all_ints[k][4], *gap_byte_places = all_ints[k][5];
  MPI_Aint *far_places = all_places[k][0], *gap_places = all_places[k][1];
  MPI_Datatype *gap_types = all_types[k][0], *types = all_types[k][1], gaps;
  MPI_Type_vector(n, 1, 2, MPI_DOUBLE, &gaps);
  MPI_Type_commit(&gaps);
  for (int i = 0; i < blocks; ++i) {
    counts[i] = i < 2 ? n : n / 2;
    places[i] = (blocks - 1 - i) * n;
    byte_places[i] = 8 * places[i];
    far_places[i] = 8 * places[i];
    gap_places[i] = 16 * places[i];
    gap_types[i] = gaps;
    types[i] = MPI_DOUBLE;
    ones[i] = n > 0;
    full[i] = n;
    gap_byte_places[i] = (int)gap_places[i];
  }
  const MPI_Datatype d = MPI_DOUBLE;
  const double* s = sent[k];
#define BOTH(name, from, to, ...)                               \
  if (ours) MPI_##name(s, from, got[k], to, __VA_ARGS__, ours); \
  PMPI_##name(s, from, expected[k], to, __VA_ARGS__, theirs)
#define TWO(...) __VA_ARGS__
#if MPI_VERSION >= 4
  // With 64-bit counts, against MPI's own with ints.
  static MPI_Count all_counts[under_way][2][8];
  MPI_Count *large = all_counts[k][0], *large_full = all_counts[k][1];
  for (int i = 0; i < blocks; ++i) {
    large[i] = counts[i];
    large_full[i] = n;
    far_places[i] = kind == 1 || kind == 3 ? places[i] : far_places[i];
  }
  const int is_large = count / 2 % 2;
  if (is_large && kind == 0) MPI_Ineighbor_allgather_c(s, n, d, got[k], n, d, on, ours);
  if (is_large && kind == 1) {
    MPI_Ineighbor_allgatherv_c(s, n, d, got[k], large_full, far_places, d, on, ours);
  }
  if (is_large && kind == 2) MPI_Ineighbor_alltoall_c(s, n, d, got[k], n, d, on, ours);
  if (is_large && kind == 3) {
    MPI_Ineighbor_alltoallv_c(s, large, far_places, d, got[k], large, far_places, d, on, ours);
  }
  if (is_large && kind < 4) ours = NULL;
#endif
  switch (kind) {
    case 0:
      BOTH(Ineighbor_allgather, TWO(n, d), TWO(n, d), on);
      break;
    case 1:
      BOTH(Ineighbor_allgatherv, TWO(n, d), TWO(full, places, d), on);
      break;
    case 2:
      BOTH(Ineighbor_alltoall, TWO(n, d), TWO(n, d), on);
      break;
    case 3:
      BOTH(Ineighbor_alltoallv, TWO(counts, places, d), TWO(counts, places, d), on);
      break;
    case 4:
      BOTH(Ineighbor_alltoallw, TWO(ones, gap_places, gap_types), TWO(full, far_places, types), on);
      break;
    default:
      BOTH(Ialltoallw, TWO(ones, gap_byte_places, gap_types), TWO(full, byte_places, types),
           MPI_COMM_WORLD);
  }
#undef TWO
#undef BOTH
  MPI_Type_free(&gaps);
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

int main(int argc, char** argv) {
  int level;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
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
    switch (below(3)) {
      case 0:
        MPI_Waitall(2 * number, requests, MPI_STATUSES_IGNORE);
        break;
      case 1:
        for (int k = 2 * number - 1; k >= 0; --k) MPI_Wait(requests + k, MPI_STATUS_IGNORE);
        break;
      default:
        for (int done = 0; !done;) MPI_Testall(2 * number, requests, &done, MPI_STATUSES_IGNORE);
    }
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
