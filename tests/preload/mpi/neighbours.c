// Compares MPI's neighbourhood collectives on Cartesian grids, with the drop-in (MPI_X) and without
// (PMPI_X), byte for byte. It is a plain MPI program: argument 1 is the number of cases, 2 the
// seed.
#ifdef ROPEWALK_TEST_ABI
#include <mpi_abi.h>
#else
#include <mpi.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { most_dimensions = 3, most_blocks = 2 * most_dimensions };

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

// The same on all ranks: the seed is.
static MPI_Comm make_grid(int ranks) {
  int extents[most_dimensions] = {0}, periods[most_dimensions];
  const int dimensions = 1 + (int)below(most_dimensions);
  MPI_Dims_create(ranks, dimensions, extents);
  for (int d = 0; d < dimensions; ++d) periods[d] = (int)below(2);
  MPI_Comm grid;
  MPI_Cart_create(MPI_COMM_WORLD, dimensions, extents, periods, (int)below(2), &grid);
  return grid;
}

// Returns the bytes from one rank to another in a direction, as both of them compute it.
static int bytes_between(unsigned seed, int from, int direction, unsigned limit) {
  unsigned mixed = seed * 2654435761U + (unsigned)from * 40503U + (unsigned)direction * 9973U;
  mixed ^= mixed >> 15;
  mixed *= 2246822519U;
  mixed ^= mixed >> 13;
  return (int)(mixed % limit);
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
  for (int test = 0; test < cases; ++test) {
    MPI_Comm grid = make_grid(ranks);
    if (grid == MPI_COMM_NULL) continue;
    int dimensions, extents[most_dimensions], periods[most_dimensions], place[most_dimensions],
        rank;
    MPI_Comm_rank(grid, &rank);
    MPI_Cartdim_get(grid, &dimensions);
    MPI_Cart_get(grid, most_dimensions, extents, periods, place);
    const unsigned limits[] = {1, 9, 300, 5000, 30000, 100000};
    for (int call = 0; call < 6; ++call) {
      const unsigned limit = limits[below(6)];
      const unsigned seed = below(1U << 30);
      int peers[most_blocks], out[most_blocks], in[most_blocks], out_at[most_blocks],
          in_at[most_blocks];
      for (int d = 0; d < dimensions; ++d)
        MPI_Cart_shift(grid, d, 1, peers + 2 * d, peers + 2 * d + 1);
      for (int k = 0; k < 2 * dimensions; ++k) {
        // Where a dimension of one or two ranks wraps around, all blocks have the same size,
        // because MPIs pair the blocks differently there.
        const int tight = periods[k / 2] && extents[k / 2] <= 2;
        out[k] = tight ? (int)(seed % limit) : bytes_between(seed, rank, k, limit);
        in[k] = peers[k] == MPI_PROC_NULL ? 5
                : tight                   ? (int)(seed % limit)
                                          : bytes_between(seed, peers[k], k ^ 1, limit);
        out_at[k] = k * 100000;
        in_at[k] = (most_blocks - 1 - k) * 100000;
      }
      memset(got, 85, room);
      memset(expected, 85, room);
      const int same = (int)(seed % limit);
      const char* what = "";
      switch (below(4)) {
        case 0:
          what = "MPI_Neighbor_alltoallv";
          MPI_Neighbor_alltoallv(send, out, out_at, MPI_BYTE, got, in, in_at, MPI_BYTE, grid);
          PMPI_Neighbor_alltoallv(send, out, out_at, MPI_BYTE, expected, in, in_at, MPI_BYTE, grid);
          break;
        case 1:
          what = "MPI_Neighbor_alltoall";
          MPI_Neighbor_alltoall(send, same, MPI_CHAR, got, same, MPI_CHAR, grid);
          PMPI_Neighbor_alltoall(send, same, MPI_CHAR, expected, same, MPI_CHAR, grid);
          break;
        case 2:
          what = "MPI_Neighbor_allgather";
          MPI_Neighbor_allgather(send, same, MPI_CHAR, got, same, MPI_CHAR, grid);
          PMPI_Neighbor_allgather(send, same, MPI_CHAR, expected, same, MPI_CHAR, grid);
          break;
        default:
          what = "MPI_Neighbor_allgatherv";
          for (int k = 0; k < 2 * dimensions; ++k) in[k] = same;
          MPI_Neighbor_allgatherv(send, same, MPI_CHAR, got, in, in_at, MPI_CHAR, grid);
          PMPI_Neighbor_allgatherv(send, same, MPI_CHAR, expected, in, in_at, MPI_CHAR, grid);
      }
      compare(what, test, got, expected, room);
    }
    MPI_Comm_free(&grid);
  }
  MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (world_rank == 0) printf("neighbours: %d cases, %d failures\n", cases, failures);
  MPI_Finalize();
  return failures != 0;
}
