/* Processes that join at run time: MPI_Comm_spawn, and collectives of parents and children. The
 * children inherit the environment of the launcher or of the parents, as the MPI does it, so some
 * may run under the drop-in and some not: the results are the same. */
#include "check.h"

static void together(MPI_Comm inter, int high, int expected_ranks) {
  MPI_Comm merged;
  int ranks, rank;
  MPI_Intercomm_merge(inter, high, &merged);
  MPI_Comm_size(merged, &ranks);
  MPI_Comm_rank(merged, &rank);
  CHECK(ranks == expected_ranks);
  for (int i = 0; i < 50; ++i) {
    int one = 1 + i, sum = 0, large[2000], sums[2000];
    CHECK_CALL(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, merged));
    CHECK(sum == ranks * (1 + i));
    for (int k = 0; k < 2000; ++k) large[k] = rank + k;
    CHECK_CALL(MPI_Allreduce(large, sums, 2000, MPI_INT, MPI_SUM, merged));
    CHECK(sums[1999] == ranks * (ranks - 1) / 2 + 1999 * ranks);
    CHECK_CALL(MPI_Bcast(large, 2000, MPI_INT, i % ranks, merged));
    CHECK(large[0] == i % ranks);
  }
  MPI_Comm_free(&merged);
}

int main(int argc, char** argv) {
  enum { children = 2 };
  MPI_Comm parent, inter;
  int ranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_get_parent(&parent);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (parent != MPI_COMM_NULL) {
    int parents;
    MPI_Comm_remote_size(parent, &parents);
    together(parent, 1, ranks + parents);
    MPI_Comm_disconnect(&parent);
    return check_finish();
  }
  for (int i = 0; i < 2; ++i) {
    CHECK_CALL(MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, children, MPI_INFO_NULL, 0, MPI_COMM_WORLD,
                              &inter, MPI_ERRCODES_IGNORE));
    together(inter, 0, ranks + children);
    MPI_Comm_disconnect(&inter);
  }
  check_warm(MPI_COMM_WORLD); /* the parents' own communicator is served all the same */
  return check_finish();
}
