/* Communicators made, used and freed, many times, by one or several threads: the process must not
 * grow by mappings, descriptors or memory. What the plain MPI itself leaks is left room for.
 *
 *   churn [ITERATIONS [THREADS]] */
#define _GNU_SOURCE
#include <dirent.h>
#include <malloc.h>
#include <pthread.h>
#include <unistd.h>

#include "check.h"

#ifdef OPEN_MPI /* keeps some 30 KB by itself, more on a busy machine */
enum { heap_room = 64 << 10 };
#else
enum { heap_room = 32 << 10 };
#endif
enum { most_threads = 8, elements = 3000, rounds = 3 };

struct Use {
  long maps, descriptors, pages;
  size_t heap; /* bytes of the main thread's that are in use */
};

static int iterations = 300, threads = 1, rank, ranks;
static MPI_Comm own[most_threads];

static struct Use use(void) {
  struct Use now = {0, 0, 0, mallinfo2().uordblks};
  FILE* file = fopen("/proc/self/maps", "r");
  for (int c; file && (c = getc(file)) != EOF;) now.maps += c == '\n';
  if (file) fclose(file);
  file = fopen("/proc/self/statm", "r");
  if (file && fscanf(file, "%*d %ld", &now.pages) != 1) now.pages = 0;
  if (file) fclose(file);
  DIR* folder = opendir("/proc/self/fd");
  while (folder && readdir(folder)) ++now.descriptors;
  if (folder) closedir(folder);
  return now;
}

static void sum_on(MPI_Comm comm, int count, int* in, int* out) {
  int size, me;
  MPI_Comm_size(comm, &size);
  MPI_Comm_rank(comm, &me);
  for (int i = 0; i < count; ++i) in[i] = me + i;
  memset(out, 0, sizeof(int) * (size_t)count);
  CHECK_CALL(MPI_Allreduce(in, out, count, MPI_INT, MPI_SUM, comm));
  CHECK(out[0] == size * (size - 1) / 2);
  CHECK(out[count - 1] == size * (size - 1) / 2 + (count - 1) * size);
}

static void* churn(void* argument) {
  int thread = (int)(size_t)argument;
  int *in = malloc(sizeof(int) * elements), *out = malloc(sizeof(int) * elements);
  int part = iterations / 2;
  for (int i = 0; i < part; ++i) {
    MPI_Comm copy, half;
    MPI_Comm_dup(own[thread], &copy);
    sum_on(copy, i % 10 == 0 ? elements : 1 + i % 50, in, out);
    MPI_Comm_split(copy, (rank + i) % 2, i % 3 ? rank : -rank, &half);
    sum_on(half, 1 + i % 7, in, out);
    if (i % 2) MPI_Barrier(copy);
    MPI_Comm_free(&copy);
    sum_on(half, 3, in, out);
    MPI_Comm_free(&half);
  }
  free(in);
  free(out);
  return NULL;
}

static void churn_on_all_threads(void) {
  pthread_t started[most_threads];
  for (int i = 1; i < threads; ++i) pthread_create(&started[i], NULL, churn, (void*)(size_t)i);
  churn((void*)0);
  for (int i = 1; i < threads; ++i) pthread_join(started[i], NULL);
}

/* A leak for each iteration is hundreds: a few more are caches of the MPI that still fill. */
static int has_grown(struct Use before, struct Use after) {
  long room = 8 + iterations / 100;
  return after.maps > before.maps + room || after.descriptors > before.descriptors + room ||
         after.pages > before.pages + 512 + iterations / 2;
}

static void print_growth(struct Use before, struct Use after) {
  printf(
      "rank %d: maps %ld -> %ld, descriptors %ld -> %ld, resident pages %ld -> %ld, "
      "heap %zu -> %zu\n",
      rank, before.maps, after.maps, before.descriptors, after.descriptors, before.pages,
      after.pages, before.heap, after.heap);
}

/* A fast leak grows in every round, a slow one over all of them. What grows in one and not in
 * another is a cache that still fills, or the kernel making 2 MiB pages of small ones. */
static void check_growth(void) {
  int grew_always = 1;
  struct Use first = use(), before = first, after = first;
  for (int round = 0; round < rounds; ++round, before = after) {
    churn_on_all_threads();
    after = use();
    int grew = has_grown(before, after);
    MPI_Allreduce(MPI_IN_PLACE, &grew, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    grew_always = grew_always && grew;
  }
  print_growth(first, after);
  CHECK(!grew_always);
  CHECK(after.descriptors <= first.descriptors + 2);
  CHECK(after.maps <= first.maps + 8);
  CHECK(after.heap <= first.heap + heap_room);
}

int main(int argc, char** argv) {
  int provided;
  if (argc > 1) iterations = atoi(argv[1]);
  if (argc > 2) threads = atoi(argv[2]);
  if (threads < 1 || threads > most_threads) threads = 1;
  MPI_Init_thread(&argc, &argv, threads > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (threads > 1 && provided < MPI_THREAD_MULTIPLE) {
    if (rank == 0) puts("skipped: this MPI has no MPI_THREAD_MULTIPLE");
    MPI_Finalize();
    return 77;
  }
  for (int i = 0; i < threads; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &own[i]);
  churn_on_all_threads();
  check_growth();
  for (int i = 0; i < threads; ++i) MPI_Comm_free(&own[i]);
  return check_finish();
}
