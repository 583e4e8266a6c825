/* Several threads of each rank, each with a copy of MPI_COMM_WORLD of its own, make their first
 * collective calls at the same time, and on every rank in another order. What a process does once,
 * at the first such call, must not be agreed on by the ranks through different communicators.
 *
 *   threads_meet [THREADS] */
#define _GNU_SOURCE
#include <pthread.h>

#include "check.h"

enum { most_threads = 16, calls = 6 };

static int threads = 8, rank, ranks;
static MPI_Comm own[most_threads];
static pthread_barrier_t together;

static void* first_calls(void* argument) {
  const int thread = (int)(size_t)argument;
  pthread_barrier_wait(&together);
  for (int i = 0; i < calls; ++i) {
    int in = 100 * thread + i, out = -1;
    CHECK_CALL(MPI_Allreduce(&in, &out, 1, MPI_INT, MPI_SUM, own[thread]));
    CHECK(out == ranks * in);
  }
  CHECK_CALL(MPI_Barrier(own[thread]));
  return NULL;
}

/* Every rank starts with another thread, and odd ranks go down. */
static int in_order_of_this_rank(int i) {
  const int step = rank % 2 == 0 ? i : threads - 1 - i;
  return (rank / 2 + step) % threads;
}

int main(int argc, char** argv) {
  int provided;
  pthread_t started[most_threads];
  if (argc > 1) threads = atoi(argv[1]);
  if (threads < 1 || threads > most_threads) threads = most_threads;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (provided < MPI_THREAD_MULTIPLE) {
    if (rank == 0) puts("skipped: this MPI has no MPI_THREAD_MULTIPLE");
    MPI_Finalize();
    return 77;
  }
  for (int i = 0; i < threads; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &own[i]);
  pthread_barrier_init(&together, NULL, (unsigned)threads);
  for (int i = 0; i < threads; ++i) {
    pthread_create(&started[i], NULL, first_calls, (void*)(size_t)in_order_of_this_rank(i));
  }
  for (int i = 0; i < threads; ++i) pthread_join(started[i], NULL);
  for (int i = 0; i < threads; ++i) MPI_Comm_free(&own[i]);
  pthread_barrier_destroy(&together);
  return check_finish();
}
