/* Blocks of malloc that lie in the arena on some ranks and in libc on others, because odd ranks
 * have learned that this place in the program does not communicate: results stay right, and a few
 * served calls later the place has the arena on all ranks. */
#include <stdint.h>

#include "check.h"

#define COUNT (1 << 18) /* ints: 1 MiB */
#define BLOCKS 60

static int rank, ranks;

/* By the kernel's word. */
static int is_in_arena(const void* block) {
  FILE* maps = fopen("/proc/self/maps", "r");
  char line[512];
  int found = 0;
  while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
    void *begin = NULL, *end = NULL;
    if (sscanf(line, "%p-%p", &begin, &end) != 2) continue;
    if ((uintptr_t)block >= (uintptr_t)begin && (uintptr_t)block < (uintptr_t)end) {
      found = strstr(line, "memfd:ropewalk") != NULL;
    }
  }
  if (maps != NULL) fclose(maps);
  return found;
}

/* One place, whatever the compiler makes of the loops around it: it does not end in a jump. */
__attribute__((noinline)) static int* take(void) {
  int* volatile block = malloc(COUNT * sizeof(int));
  return block;
}

static void fill(int* block, int round) {
  for (int i = 0; i < COUNT; ++i) block[i] = rank * 31 + i + round;
}

/* One of each kind of movement; the blocks are shared out among the ranks. */
static void communicate(int* a, int* b, int round) {
  const int part = COUNT / ranks, sum = 31 * ranks * (ranks - 1) / 2;
  int i, wrong = 0;
  fill(a, round);
  CHECK_CALL(MPI_Allreduce(a, b, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  for (i = 0; i < COUNT; ++i) wrong += b[i] != sum + ranks * (i + round);
  CHECK(wrong == 0);
  CHECK_CALL(MPI_Alltoall(a, part, MPI_INT, b, part, MPI_INT, MPI_COMM_WORLD));
  for (i = 0; i < part * ranks; ++i) {
    wrong += b[i] != i / part * 31 + rank * part + i % part + round;
  }
  CHECK(wrong == 0);
  CHECK_CALL(MPI_Allgather(a, part, MPI_INT, b, part, MPI_INT, MPI_COMM_WORLD));
  for (i = 0; i < part * ranks; ++i) wrong += b[i] != i / part * 31 + i % part + round;
  CHECK(wrong == 0);
  CHECK_CALL(MPI_Bcast(a, COUNT, MPI_INT, ranks - 1, MPI_COMM_WORLD));
  for (i = 0; i < COUNT; ++i) wrong += a[i] != (ranks - 1) * 31 + i + round;
  CHECK(wrong == 0);
}

int main(int count, char** arguments) {
  int* blocks[BLOCKS];
  MPI_Init(&count, &arguments);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int round = 0; round < 8; ++round) {
    /* A program's own work: nothing of it is communicated. */
    for (int i = 0; i < BLOCKS; ++i) {
      const int works = round == 0 && rank % 2 == 1;
      blocks[i] = works || i < 2 ? take() : NULL;
    }
    if (round > 0) {
      const int expected = round > 2 || rank % 2 == 0;
      CHECK(round == 2 || is_in_arena(blocks[0]) == expected);
      communicate(blocks[0], blocks[1], round);
    }
    for (int i = 0; i < BLOCKS; ++i) free(blocks[i]);
    CHECK_CALL(MPI_Barrier(MPI_COMM_WORLD));
  }
  return check_finish();
}
