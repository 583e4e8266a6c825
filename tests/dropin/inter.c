/* Collectives of intercommunicators, and of the communicator they merge into. */
#include "check.h"

int main(int argc, char** argv) {
  int rank, ranks, side, remote, me;
  MPI_Comm half, inter, merged;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  side = rank % 2;
  MPI_Comm_split(MPI_COMM_WORLD, side, rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - side, 7, &inter);
  MPI_Comm_remote_size(inter, &remote);
  MPI_Comm_rank(inter, &me);
  for (int i = 0; i < 20; ++i) {
    int value = rank + i, sum = 0, expected = 0;
    int all[64] = {0}, mine[64];
    for (int r = 1 - side; r < ranks; r += 2) expected += r + i;
    CHECK_CALL(MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, inter));
    CHECK(sum == expected); /* of the other side */
    CHECK_CALL(MPI_Allgather(&value, 1, MPI_INT, all, 1, MPI_INT, inter));
    for (int r = 0; r < remote; ++r) CHECK(all[r] == 2 * r + 1 - side + i);
    for (int r = 0; r < remote; ++r) mine[r] = 100 * rank + r;
    CHECK_CALL(MPI_Alltoall(mine, 1, MPI_INT, all, 1, MPI_INT, inter));
    for (int r = 0; r < remote; ++r) CHECK(all[r] == 100 * (2 * r + 1 - side) + me);
    int root = side == 0 ? (me == 0 ? MPI_ROOT : MPI_PROC_NULL) : 0;
    int news = side == 0 && me == 0 ? 4711 + i : 0;
    CHECK_CALL(MPI_Bcast(&news, 1, MPI_INT, root, inter));
    CHECK(side == 0 || news == 4711 + i);
    CHECK_CALL(MPI_Reduce(&value, &sum, 1, MPI_INT, MPI_SUM, root, inter));
    CHECK(root != MPI_ROOT || sum == expected);
    CHECK_CALL(MPI_Barrier(inter));
  }
  MPI_Intercomm_merge(inter, side, &merged);
  for (int i = 0; i < 20; ++i) {
    int value = rank, sum = 0;
    CHECK_CALL(MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, merged));
    CHECK(sum == ranks * (ranks - 1) / 2);
  }
  MPI_Comm_free(&merged);
  MPI_Comm_free(&inter);
  MPI_Comm_free(&half);
  return check_finish();
}
