// Compares MPI's neighbourhood collectives on grids and graphs, with the drop-in (MPI_X) and
// without (PMPI_X), byte for byte; persistent ones with PMPI's blocking ones. Ranks are neighbours
// twice, and their own. It is a plain MPI program: argument 1 is the number of cases, 2 the seed; a
// third one leaves out persistent calls, of which Open MPI's own pair the blocks of double
// neighbours differently.
#ifdef ROPEWALK_TEST_ABI
#include <mpi_abi.h>
#else
#include <mpi.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { most_dimensions = 3, most_ranks = 8, most_blocks = 3 * most_ranks };

static unsigned long long state;
static unsigned below(unsigned limit) {
  state = state * 6364136223846793005ULL + 1442695040888963407ULL;
  return (unsigned)(state >> 33) % limit;
}

static int failures;
static void compare(const char* what, int test, const char* got, const char* expected,
                    size_t bytes) {
  if (memcmp(got, expected, bytes) == 0) return;
  ++failures;
  size_t at = 0;
  while (got[at] == expected[at]) ++at;
  fprintf(stderr, "case %d, %s: byte %zu of %zu differs\n", test, what, at, bytes);
}

// The neighbours of this rank on a communicator, in MPI's order.
typedef struct {
  MPI_Comm comm;
  int rank, in, out, sources[most_blocks], destinations[most_blocks];
  int directed;  // a grid where blocks go to opposite directions, and have lengths of their own
} Topology;

// All of these are the same on all ranks: the seed is.
static void make_grid(Topology* made, int ranks) {
  int extents[most_dimensions] = {0}, periods[most_dimensions];
  const int dimensions = 1 + (int)below(most_dimensions);
  MPI_Dims_create(ranks, dimensions, extents);
  for (int d = 0; d < dimensions; ++d) periods[d] = (int)below(2);
  MPI_Cart_create(MPI_COMM_WORLD, dimensions, extents, periods, (int)below(2), &made->comm);
  made->in = made->out = 2 * dimensions;
  made->directed = 1;
  for (int d = 0; d < dimensions; ++d) {
    MPI_Cart_shift(made->comm, d, 1, made->sources + 2 * d, made->sources + 2 * d + 1);
    // MPIs pair the blocks differently there.
    if (periods[d] && extents[d] <= 2) made->directed = 0;
  }
  memcpy(made->destinations, made->sources, sizeof made->sources);
}

// How many edges lead from one rank to another; some ranks have more neighbours than are served.
static int edges[most_ranks][most_ranks];
static void draw_edges(int ranks, int symmetric) {
  const unsigned limit = below(5) == 0 ? 4 : 3;
  for (int i = 0; i < ranks; ++i) {
    for (int k = 0; k < ranks; ++k) edges[i][k] = (int)below(limit);
  }
  for (int i = 0; symmetric && i < ranks; ++i) {
    for (int k = 0; k < i; ++k) edges[i][k] = edges[k][i];
  }
}
static void shuffle(int* values, int number, unsigned long long seed) {
  for (int i = number - 1; i > 0; --i) {
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    const int k = (int)((seed >> 33) % (unsigned)(i + 1));
    const int value = values[i];
    values[i] = values[k];
    values[k] = value;
  }
}

static void make_dist_graph(Topology* made, int ranks, int rank) {
  draw_edges(ranks, 0);
  int sources[most_blocks], destinations[most_blocks], in = 0, out = 0;
  for (int i = 0; i < ranks; ++i) {
    for (int k = 0; k < edges[i][rank]; ++k) sources[in++] = i;
    for (int k = 0; k < edges[rank][i]; ++k) destinations[out++] = i;
  }
  shuffle(sources, in, state + (unsigned)rank);
  shuffle(destinations, out, state + 77U + (unsigned)rank);
  int weights[2][most_blocks];
  for (int k = 0; k < most_blocks; ++k) weights[0][k] = weights[1][k] = 1;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, in, sources, weights[0], out, destinations,
                                 weights[1], MPI_INFO_NULL, 0, &made->comm);
  made->in = in;
  made->out = out;
  MPI_Dist_graph_neighbors(made->comm, in, made->sources, weights[0], out, made->destinations,
                           weights[1]);
}

static void make_graph(Topology* made, int ranks, int rank) {
  draw_edges(ranks, 1);
  int index[most_ranks], all[most_ranks * most_blocks], number = 0;
  for (int i = 0; i < ranks; ++i) {
    const int first = number;
    for (int k = 0; k < ranks; ++k) {
      for (int edge = 0; edge < edges[i][k]; ++edge) all[number++] = k;
    }
    shuffle(all + first, number - first, state + (unsigned)i);
    index[i] = number;
  }
  MPI_Graph_create(MPI_COMM_WORLD, ranks, index, all, 0, &made->comm);
  MPI_Graph_neighbors_count(made->comm, rank, &made->in);
  made->out = made->in;
  MPI_Graph_neighbors(made->comm, rank, made->in, made->sources);
  memcpy(made->destinations, made->sources, sizeof made->sources);
}

static Topology make_topology(int ranks, int rank) {
  Topology made = {.comm = MPI_COMM_NULL};
  switch (below(4)) {
    case 0:
      make_dist_graph(&made, ranks, rank);
      break;
    case 1:
      make_graph(&made, ranks, rank);
      break;
    default:
      make_grid(&made, ranks);
  }
  MPI_Comm_rank(made.comm, &made.rank);
  return made;
}

// Returns the bytes from one rank to another in a direction, as both of them compute it.
static int bytes_between(unsigned seed, int from, int direction, unsigned limit) {
  unsigned mixed = seed * 2654435761U + (unsigned)from * 40503U + (unsigned)direction * 9973U;
  mixed ^= mixed >> 15;
  mixed *= 2246822519U;
  mixed ^= mixed >> 13;
  return (int)(mixed % limit);
}

// One call of the drop-in's against one of the MPI's.
typedef struct {
  const Topology* on;
  int same, out[most_blocks], in[most_blocks], out_at[most_blocks], in_at[most_blocks];
} Lengths;

static Lengths draw_lengths(const Topology* on) {
  const unsigned limits[] = {1, 9, 300, 5000, 30000, 100000};
  const unsigned limit = limits[below(6)];
  const unsigned seed = below(1U << 30);
  Lengths made = {.on = on, .same = (int)(seed % limit)};
  for (int k = 0; k < on->out; ++k) {
    // Edges between the same two ranks have one length, where the MPI may exchange them.
    const int peer = on->destinations[k];
    made.out[k] =
        peer == MPI_PROC_NULL ? 3 : bytes_between(seed, on->rank, on->directed ? k : peer, limit);
    made.out_at[k] = k * 100000;
  }
  for (int k = 0; k < on->in; ++k) {
    const int peer = on->sources[k];
    made.in[k] = peer == MPI_PROC_NULL
                     ? 5
                     : bytes_between(seed, peer, on->directed ? k ^ 1 : on->rank, limit);
    made.in_at[k] = (most_blocks - 1 - k) * 100000;
  }
  return made;
}

#if MPI_VERSION >= 4
enum { ways = 12 };
#elif defined OMPI_MAJOR_VERSION && OMPI_MAJOR_VERSION >= 5
enum { ways = 8 };
#else
enum { ways = 4 };
#endif
#if MPI_VERSION >= 4 || (defined OMPI_MAJOR_VERSION && OMPI_MAJOR_VERSION >= 5)
#define PERSISTENT(name, ...)                              \
  MPI_##name##_init(__VA_ARGS__, MPI_INFO_NULL, &request); \
  MPI_Start(&request);                                     \
  MPI_Wait(&request, MPI_STATUS_IGNORE);                   \
  MPI_Request_free(&request)
#else
#define PERSISTENT(name, ...)
#endif

#if MPI_VERSION >= 4
// The forms with 64-bit counts.
static void call_large(const Lengths* l, int way, const char* s, char* to, const int* same) {
  const MPI_Comm c = l->on->comm;
  const int n = l->same;
  MPI_Count out[most_blocks], in[most_blocks];
  MPI_Aint out_at[most_blocks], in_at[most_blocks];
  for (int k = 0; k < l->on->out; ++k) {
    out[k] = l->out[k];
    out_at[k] = l->out_at[k];
  }
  for (int k = 0; k < l->on->in; ++k) {
    in[k] = way == 11 ? same[k] : l->in[k];
    in_at[k] = l->in_at[k];
  }
  switch (way) {
    case 8:
      MPI_Neighbor_alltoallv_c(s, out, out_at, MPI_BYTE, to, in, in_at, MPI_BYTE, c);
      break;
    case 9:
      MPI_Neighbor_alltoall_c(s, n, MPI_CHAR, to, n, MPI_CHAR, c);
      break;
    case 10:
      MPI_Neighbor_allgather_c(s, n, MPI_CHAR, to, n, MPI_CHAR, c);
      break;
    default:
      MPI_Neighbor_allgatherv_c(s, n, MPI_CHAR, to, in, in_at, MPI_CHAR, c);
  }
}
#endif

static void call(const Lengths* l, int way, const char* s, char* to, char* expected) {
  const MPI_Comm c = l->on->comm;
  const int n = l->same;
  MPI_Request request = MPI_REQUEST_NULL;
  (void)request;
  // Blocks of an allgather have one length.
  int in[most_blocks];
  for (int k = 0; k < l->on->in; ++k) in[k] = n;
  switch (way) {
    case 0:
      MPI_Neighbor_alltoallv(s, l->out, l->out_at, MPI_BYTE, to, l->in, l->in_at, MPI_BYTE, c);
      break;
    case 1:
      MPI_Neighbor_alltoall(s, n, MPI_CHAR, to, n, MPI_CHAR, c);
      break;
    case 2:
      MPI_Neighbor_allgather(s, n, MPI_CHAR, to, n, MPI_CHAR, c);
      break;
    case 3:
      MPI_Neighbor_allgatherv(s, n, MPI_CHAR, to, in, l->in_at, MPI_CHAR, c);
      break;
    case 4:
      PERSISTENT(Neighbor_alltoallv, s, l->out, l->out_at, MPI_BYTE, to, l->in, l->in_at, MPI_BYTE,
                 c);
      break;
    case 5:
      PERSISTENT(Neighbor_alltoall, s, n, MPI_CHAR, to, n, MPI_CHAR, c);
      break;
    case 6:
      PERSISTENT(Neighbor_allgather, s, n, MPI_CHAR, to, n, MPI_CHAR, c);
      break;
    case 7:
      PERSISTENT(Neighbor_allgatherv, s, n, MPI_CHAR, to, in, l->in_at, MPI_CHAR, c);
      break;
#if MPI_VERSION >= 4
    default:
      call_large(l, way, s, to, in);
#endif
  }
  switch (way % 4) {
    case 0:
      PMPI_Neighbor_alltoallv(s, l->out, l->out_at, MPI_BYTE, expected, l->in, l->in_at, MPI_BYTE,
                              c);
      break;
    case 1:
      PMPI_Neighbor_alltoall(s, n, MPI_CHAR, expected, n, MPI_CHAR, c);
      break;
    case 2:
      PMPI_Neighbor_allgather(s, n, MPI_CHAR, expected, n, MPI_CHAR, c);
      break;
    default:
      PMPI_Neighbor_allgatherv(s, n, MPI_CHAR, expected, in, l->in_at, MPI_CHAR, c);
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int cases = argc > 1 ? atoi(argv[1]) : 100;
  state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  int ranks, world_rank;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  const size_t room = (size_t)most_blocks * 100000;
  char* send = malloc(room);
  char* got = malloc(room);
  char* expected = malloc(room);
  for (size_t i = 0; i < room; ++i) send[i] = (char)(i * 7 + (size_t)world_rank * 31 + (i >> 8));
  const char* names[] = {"alltoallv", "alltoall", "allgather", "allgatherv"};
  for (int test = 0; test < cases; ++test) {
    Topology on = make_topology(ranks, world_rank);
    for (int round = 0; round < 6; ++round) {
      const Lengths lengths = draw_lengths(&on);
      int way = (int)below(ways);
      if (argc > 3 && way / 4 == 1) way -= 4;
      memset(got, 85, room);
      memset(expected, 85, room);
      call(&lengths, way, send, got, expected);
      compare(names[way % 4], test, got, expected, room);
    }
    MPI_Comm_free(&on.comm);
  }
  MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (world_rank == 0) printf("neighbours: %d cases, %d failures\n", cases, failures);
  MPI_Finalize();
  return failures != 0;
}
