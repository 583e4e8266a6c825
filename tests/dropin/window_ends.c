/* Windows that come and go: one in each step, one that a library ends in a callback of
 * MPI_Finalize, as MPI's text on MPI_COMM_SELF has it, and locks of all kinds from all ranks. Each
 * check holds for every MPI, with or without the drop-in. */
#include "check.h"

static int rank, ranks;
static MPI_Win kept;
static long long* counters;

/* ---- a window in each step, its kinds and sizes in turns */
static void check_steps(int with_shared) {
  for (int step = 0; step < 40; ++step) {
    const MPI_Aint bytes = (MPI_Aint)sizeof(int) * (1 + (step + rank) % 3);
    int *memory, got = -1;
    MPI_Win window;
    if (step % 3 == 2) {
      CHECK_CALL(MPI_Alloc_mem(bytes, MPI_INFO_NULL, &memory));
      CHECK_CALL(MPI_Win_create(memory, bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &window));
    } else if (step % 3 == 0 || !with_shared) {
      CHECK_CALL(MPI_Win_allocate(bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window));
    } else {
      CHECK_CALL(
          MPI_Win_allocate_shared(bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window));
    }
    memory[0] = 1000 * step + rank;
    MPI_Win_fence(0, window);
    const int from = (rank + 1) % ranks;
    CHECK_CALL(MPI_Get(&got, 1, MPI_INT, from, 0, 1, MPI_INT, window));
    MPI_Win_fence(0, window);
    CHECK(got == 1000 * step + from);
    CHECK_CALL(MPI_Win_free(&window));
    if (step % 3 == 2) CHECK_CALL(MPI_Free_mem(memory));
  }
}

/* ---- one lock, by readers and writers: a writer alone changes both halves */
static void check_locks(int rounds) {
  long long* pair;
  MPI_Win window;
  MPI_Win_allocate(2 * sizeof(long long), 8, MPI_INFO_NULL, MPI_COMM_WORLD, &pair, &window);
  pair[0] = pair[1] = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  long long writes = 0, all = 0;
  for (int round = 0; round < rounds; ++round) {
    const int writer = (round + rank) % 3 == 0;
    const int everybody = !writer && (round + rank) % 5 == 0;
    long long seen[2], next[2];
    if (everybody) {
      CHECK_CALL(MPI_Win_lock_all(0, window));
    } else {
      CHECK_CALL(MPI_Win_lock(writer ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, 0, 0, window));
    }
    CHECK_CALL(MPI_Get(seen, 2, MPI_LONG_LONG, 0, 0, 2, MPI_LONG_LONG, window));
    CHECK_CALL(MPI_Win_flush(0, window));
    CHECK(seen[0] == seen[1]);
    next[0] = next[1] = seen[0] + 1;
    if (writer) {
      ++writes;
      CHECK_CALL(MPI_Put(next, 2, MPI_LONG_LONG, 0, 0, 2, MPI_LONG_LONG, window));
    }
    CHECK_CALL(everybody ? MPI_Win_unlock_all(window) : MPI_Win_unlock(0, window));
  }
  MPI_Reduce(&writes, &all, 1, MPI_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
    CHECK(pair[0] == all && pair[1] == all);
    MPI_Win_unlock(0, window);
  }
  MPI_Win_free(&window);
}

/* ---- what a library keeps until the end */
static int end_kept(MPI_Comm comm, int key, void* value, void* extra) {
  (void)comm, (void)key, (void)value, (void)extra;
  const long long one = 1;
  CHECK_CALL(MPI_Accumulate(&one, 1, MPI_LONG_LONG, 0, 0, 1, MPI_LONG_LONG, MPI_SUM, kept));
  CHECK_CALL(MPI_Win_unlock_all(kept));
  CHECK_CALL(MPI_Win_free(&kept));
  return MPI_SUCCESS;
}
static void keep(void) {
  int key;
  MPI_Win_allocate(sizeof(long long), 8, MPI_INFO_NULL, MPI_COMM_WORLD, &counters, &kept);
  counters[0] = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock_all(0, kept);
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, end_kept, &key, NULL);
  MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
  MPI_Comm_free_keyval(&key);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  check_steps(argc <= 2);
  check_locks(argc > 1 ? atoi(argv[1]) : 3000);
  keep();
  MPI_Finalize();
  return check_failures != 0;
}
