/* Threads of each rank that use windows at the same time: one window together, each a target of its
 * own, and each a window of its own. Whatever the order, no addition is lost. */
#include <pthread.h>

#include "check.h"

/* The window of all: two numbers for additions of one element, one under locks, and an array. */
enum { threads = 3, times = 60, additions = 600, wide = 8192, numbers_in_all = 3 + wide };
static int rank, ranks;
static MPI_Win together, own[threads];
static pthread_mutex_t checks = PTHREAD_MUTEX_INITIALIZER;

/* The call itself is made without the mutex, which a thread that waits for a lock must not hold. */
#define CHECK_IN_THREAD(condition)     \
  do {                                 \
    const int holds = (condition);     \
    pthread_mutex_lock(&checks);       \
    CHECK(holds && "in: " #condition); \
    pthread_mutex_unlock(&checks);     \
  } while (0)
#define CALL(call) CHECK_IN_THREAD((call) == MPI_SUCCESS)

static void run(void* (*work)(void*)) {
  pthread_t made[threads];
  for (long i = 0; i < threads; ++i) pthread_create(&made[i], NULL, work, (void*)i);
  for (int i = 0; i < threads; ++i) pthread_join(made[i], NULL);
}

/* All threads of all ranks add to numbers of rank 0. */
static void* add(void* unused) {
  const long long one = 1;
  long long* ones = malloc(wide * sizeof *ones);
  (void)unused;
  for (int i = 0; i < wide; ++i) ones[i] = 1;
  for (int i = 0; i < additions; ++i) {
    long long before = -1;
    CALL(MPI_Fetch_and_op(&one, &before, MPI_LONG_LONG, 0, 0, MPI_SUM, together));
    CALL(MPI_Accumulate(&one, 1, MPI_LONG_LONG, 0, 1, 1, MPI_LONG_LONG, MPI_SUM, together));
    CALL(MPI_Accumulate(ones, wide, MPI_LONG_LONG, 0, 3, wide, MPI_LONG_LONG, MPI_SUM, together));
    CALL(MPI_Win_flush(0, together));
    CHECK_IN_THREAD(before >= 0 && before < (long long)threads * additions * ranks);
  }
  free(ones);
  return NULL;
}

/* Reads a number and writes it back raised, which only a lock makes safe. */
static void raise_number(int target, MPI_Aint place, MPI_Win window) {
  long long number = -1;
  CALL(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, window));
  CALL(MPI_Get(&number, 1, MPI_LONG_LONG, target, place, 1, MPI_LONG_LONG, window));
  CALL(MPI_Win_flush(target, window));
  ++number;
  CALL(MPI_Put(&number, 1, MPI_LONG_LONG, target, place, 1, MPI_LONG_LONG, window));
  CALL(MPI_Win_unlock(target, window));
}

static void* raise_at_own_target(void* thread) {
  for (int i = 0; i < times && (long)thread < ranks; ++i) {
    raise_number((int)(long)thread, 2, together);
  }
  return NULL;
}
static void* raise_in_own_window(void* thread) {
  for (int i = 0; i < times; ++i) raise_number(i % ranks, 0, own[(long)thread]);
  return NULL;
}

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (provided < MPI_THREAD_MULTIPLE) {
    fprintf(stderr, "this MPI does not allow several threads to call it\n");
    MPI_Finalize();
    return 77;
  }
  check_warm(MPI_COMM_WORLD);
  long long *numbers = NULL, *memory[threads];
  MPI_Win_allocate(numbers_in_all * sizeof *numbers, sizeof *numbers, MPI_INFO_NULL, MPI_COMM_WORLD,
                   &numbers, &together);
  memset(numbers, 0, numbers_in_all * sizeof *numbers);
  for (int i = 0; i < threads; ++i) {
    MPI_Win_allocate(sizeof *numbers, sizeof *numbers, MPI_INFO_NULL, MPI_COMM_WORLD, &memory[i],
                     &own[i]);
    *memory[i] = 0;
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock_all(0, together);
  run(add);
  MPI_Win_unlock_all(together);
  MPI_Barrier(MPI_COMM_WORLD);
  run(raise_at_own_target);
  run(raise_in_own_window);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, together);
  const long long all = (long long)threads * additions * ranks;
  if (rank == 0) CHECK(numbers[0] == all && numbers[1] == all);
  for (int i = 0; i < wide; ++i) CHECK(numbers[3 + i] == (rank == 0 ? all : 0));
  CHECK(numbers[2] == (rank < threads ? (long long)times * ranks : 0));
  MPI_Win_unlock(rank, together);
  for (int i = 0; i < threads; ++i) {
    long long share = 0;
    for (int turn = 0; turn < times; ++turn) share += turn % ranks == rank ? ranks : 0;
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, own[i]);
    CHECK(*memory[i] == share);
    MPI_Win_unlock(rank, own[i]);
    MPI_Win_free(&own[i]);
  }
  MPI_Win_free(&together);
  return check_finish();
}
