/* A program under a limit of the address space, as `ulimit -v` or a batch system's h_vmem: it has
 * the memory that it would have without the drop-in, whether its collectives are served or, with
 * arenas that are too large for the limit, passed on. */
#include <sys/resource.h>
#include <unistd.h>

#include "check.h"

static const rlim_t limit = (rlim_t)6 << 30;
static const size_t wanted = (size_t)2 << 30;

/* Everything that is preloaded has been loaded by now: once more, under the limit. */
static void start_again_limited(char** argv) {
  struct rlimit now;
  if (getrlimit(RLIMIT_AS, &now) != 0 || now.rlim_cur == limit) return;
  now.rlim_cur = limit;
  if (setrlimit(RLIMIT_AS, &now) == 0) execv("/proc/self/exe", argv);
  perror("limited");
  exit(1);
}

static size_t mapped_bytes(void) {
  unsigned long pages = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  CHECK(file != NULL && fscanf(file, "%lu", &pages) == 1);
  if (file != NULL) fclose(file);
  return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void reduce(int count) {
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  double* values = malloc((size_t)count * sizeof *values);
  for (int i = 0; i < count; ++i) values[i] = rank + i;
  CHECK_CALL(MPI_Allreduce(MPI_IN_PLACE, values, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
  int right = 1;
  for (int i = 0; i < count; ++i) right &= values[i] == size * (size - 1) / 2 + (double)size * i;
  CHECK(right);
  free(values);
}

int main(int argc, char** argv) {
  (void)argc;
  start_again_limited(argv);
  MPI_Init(NULL, NULL);
  for (int count = 1; count <= 1 << 20; count *= 32) reduce(count);
  char* volatile block = malloc(wanted);
  CHECK(block != NULL);
  if (block == NULL) fprintf(stderr, "%zu bytes are mapped already\n", mapped_bytes());
  if (block != NULL) block[wanted / 2] = 1;
  free(block);
  for (int count = 1; count <= 1 << 20; count *= 32) reduce(count);
  return check_finish();
}
