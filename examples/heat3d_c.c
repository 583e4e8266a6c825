/* The heat equation on a cube in C: divided over the ranks along the first dimension, periodic in
 * all three, and compared bit for bit to the same steps on one rank.
 *
 *   ropewalk run -n 4 -- build/release/examples/heat3d_c
 */
#include <ropewalk/ropewalk.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CELLS = 32, STEPS = 10, SIDE = CELLS + 2 };

/* Ends this rank with the text of the error; the launcher ends the others. */
static void check(int code) {
  if (code == RW_SUCCESS) return;
  fprintf(stderr, "heat3d_c: %s\n", rw_last_error());
  exit(EXIT_FAILURE);
}

static size_t at(int x, int y, int z) { return ((size_t)x * SIDE + (size_t)y) * SIDE + (size_t)z; }

/* Planes of SIDE x SIDE cells, one layer of ghosts on every side. */
static double* make_block(int planes) {
  void* memory = NULL;
  const size_t bytes = (size_t)(planes + 2) * SIDE * SIDE * sizeof(double);
  check(rw_alloc(bytes, 0, &memory));
  memset(memory, 0, bytes);
  return memory;
}

static void initialise(double* block, int first, int planes) {
  for (int x = 1; x <= planes; ++x)
    for (int y = 1; y <= CELLS; ++y)
      for (int z = 1; z <= CELLS; ++z)
        block[at(x, y, z)] = (double)(((first + x) * 7919L + y * 104729L + z * 1299709L) % 1000);
}

static void step(const double* old, double* next, int planes) {
  for (int x = 1; x <= planes; ++x)
    for (int y = 1; y <= CELLS; ++y)
      for (int z = 1; z <= CELLS; ++z) {
        const double sum = old[at(x - 1, y, z)] + old[at(x + 1, y, z)] + old[at(x, y - 1, z)] +
                           old[at(x, y + 1, z)] + old[at(x, y, z - 1)] + old[at(x, y, z + 1)];
        next[at(x, y, z)] = old[at(x, y, z)] + 0.125 * (sum - 6.0 * old[at(x, y, z)]);
      }
}

static void wrap(double* whole) {
  for (int a = 1; a <= CELLS; ++a)
    for (int b = 1; b <= CELLS; ++b) {
      whole[at(0, a, b)] = whole[at(CELLS, a, b)];
      whole[at(CELLS + 1, a, b)] = whole[at(1, a, b)];
      whole[at(a, 0, b)] = whole[at(a, CELLS, b)];
      whole[at(a, CELLS + 1, b)] = whole[at(a, 1, b)];
      whole[at(a, b, 0)] = whole[at(a, b, CELLS)];
      whole[at(a, b, CELLS + 1)] = whole[at(a, b, 1)];
    }
}

/* The result in block[0]; block[1] is scratch. */
static void run_serially(double* block[2]) {
  initialise(block[0], 0, CELLS);
  for (int i = 0; i < STEPS; ++i) {
    wrap(block[0]);
    step(block[0], block[1], CELLS);
    double* old = block[0];
    block[0] = block[1];
    block[1] = old;
  }
}

static void run_divided(double* block[2], int first, int planes, const rw_grid* grid,
                        rw_endpoints* endpoints) {
  const size_t interior[] = {(size_t)planes, CELLS, CELLS};
  const size_t ghost[] = {1, 1, 1};
  rw_halo* halo[2];
  rw_halo_options options = RW_HALO_OPTIONS_INIT;
  options.strategy = RW_STRATEGY_CONCURRENT;
  initialise(block[0], first, planes);
  for (int i = 0; i < 2; ++i) {
    const rw_field field = {sizeof(rw_field), block[i], sizeof(double), interior, ghost};
    check(rw_halo_create_fields(grid, endpoints, 1, &field, &options, &halo[i]));
  }
  for (int i = 0; i < STEPS; ++i) {
    check(rw_halo_exchange(halo[i % 2]));
    step(block[i % 2], block[(i + 1) % 2], planes);
  }
  check(rw_halo_free(halo[0]));
  check(rw_halo_free(halo[1]));
}

static int differing_planes(const double* block, const double* whole, int first, int planes) {
  int wrong = 0;
  for (int x = 1; x <= planes; ++x)
    for (int y = 1; y <= CELLS; ++y)
      if (memcmp(&block[at(x, y, 1)], &whole[at(x + first, y, 1)], CELLS * sizeof(double)) != 0) {
        ++wrong;
        break;
      }
  return wrong;
}

int main(void) {
  rw_mpi_comm world;
  rw_grid* grid = NULL;
  rw_endpoints* endpoints = NULL;
  int rank = 0;
  int ranks = 0;
  check(rw_init());
  check(rw_comm_world(&world));
  check(rw_comm_rank(world, &rank));
  check(rw_comm_size(world, &ranks));

  const int extents[] = {ranks, 1, 1};
  const int periodic[] = {1, 1, 1};
  check(rw_grid_create(world, 3, extents, periodic, &grid));
  check(rw_endpoints_create(world, 1, 0, &endpoints));

  const int first = CELLS * rank / ranks;
  const int planes = CELLS * (rank + 1) / ranks - first;
  double* block[2] = {make_block(planes), make_block(planes)};
  double* whole[2] = {make_block(CELLS), make_block(CELLS)};
  run_divided(block, first, planes, grid, endpoints);
  run_serially(whole);
  const int wrong = differing_planes(block[STEPS % 2], whole[0], first, planes);
  if (wrong != 0) fprintf(stderr, "heat3d_c: %d planes of rank %d are WRONG\n", wrong, rank);
  if (rank == 0 && wrong == 0) printf("heat3d_c: %d steps on %d ranks, same bits\n", STEPS, ranks);

  for (int i = 0; i < 2; ++i) {
    check(rw_free(block[i]));
    check(rw_free(whole[i]));
  }
  check(rw_endpoints_free(endpoints));
  check(rw_grid_free(grid));
  check(rw_finalize());
  return wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
