/* MPI_Alltoallv whose blocks differ in length: in place, with blocks that MPI sends by itself and
 * blocks that it does not, and with a rank that has no data and null for both buffers. */
#include "check.h"

static int rank, ranks;
static int *counts, *places; /* what goes from each rank to this one, and back */

/* How many elements two ranks send to each other. */
static int shared_by(int a, int b, int unit, int without) {
  return a == without || b == without ? 0 : (a + b) % 3 * unit / 2;
}

static int deal(int unit, int without) {
  int end = 0;
  for (int peer = 0; peer < ranks; ++peer) {
    counts[peer] = shared_by(rank, peer, unit, without);
    places[peer] = end;
    end += counts[peer];
  }
  return end;
}

static void fill(int* data) {
  for (int peer = 0; peer < ranks; ++peer) {
    for (int i = 0; i < counts[peer]; ++i) data[places[peer] + i] = 1000 * rank + peer;
  }
}

static void expect_received(const int* data) {
  int good = 1;
  for (int peer = 0; peer < ranks; ++peer) {
    for (int i = 0; i < counts[peer]; ++i) {
      good = good && data[places[peer] + i] == 1000 * peer + rank;
    }
  }
  CHECK(good);
}

static void in_place(int unit) {
  const int end = deal(unit, -1);
  int* data = malloc(((size_t)end + 1) * sizeof *data);
  for (int i = 0; i < 10; ++i) {
    fill(data);
    CHECK_CALL(MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_INT, data, counts, places, MPI_INT,
                             MPI_COMM_WORLD));
    expect_received(data);
  }
  free(data);
}

static void without_buffers(int unit, int without) {
  const int end = deal(unit, without);
  const size_t bytes = ((size_t)end + 1) * sizeof(int);
  int* from = rank == without ? NULL : malloc(bytes);
  int* to = rank == without ? NULL : malloc(bytes);
  for (int i = 0; i < 5; ++i) {
    fill(from);
    CHECK_CALL(
        MPI_Alltoallv(from, counts, places, MPI_INT, to, counts, places, MPI_INT, MPI_COMM_WORLD));
    expect_received(to);
  }
  free(from);
  free(to);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  counts = malloc((size_t)ranks * sizeof *counts);
  places = malloc((size_t)ranks * sizeof *places);
  check_warm(MPI_COMM_WORLD);
  const int units[] = {10, 3000, 100000};
  for (int i = 0; i < 3; ++i) {
    in_place(units[i]);
    without_buffers(units[i], 1);
  }
  free(counts);
  free(places);
  return check_finish();
}
