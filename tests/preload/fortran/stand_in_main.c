/* stand_in_main LIBRARY: loads a library with names of its own like MPI's, for itself alone, in a
   process without MPI but with the drop-in: the library reaches its own functions. A name that
   nobody has ends the program, as an undefined symbol does. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static int absent_status(void) {
  int status = 0;
  const pid_t child = fork();
  if (child == 0) {
    void (*scan)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "mpi_scan_");
    if (scan == NULL) _exit(1); /* without the drop-in */
    scan();
    _exit(0);
  }
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int main(int count, char** words) {
  void* library = count == 2 ? dlopen(words[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  if (library == NULL) return fprintf(stderr, "%s\n", dlerror()), 2;
  double (*bcast)(void) = (double (*)(void))dlsym(library, "call_bcast");
  int (*barrier)(void) = (int (*)(void))dlsym(library, "call_barrier");
  const double expected = 1.5 * 2 + 0.25 * 8 + 3 + 2 * 4 + 3 * 5 + 5 * 6 + 7 * 7;
  for (int i = 0; i < 3; ++i) {
    if (bcast() != expected) return fprintf(stderr, "mpi_bcast: %f\n", bcast()), 1;
    if (barrier() != 42) return fprintf(stderr, "mpi_barrier_: %d\n", barrier()), 1;
  }
  if (absent_status() != 127) return fprintf(stderr, "mpi_scan_: no error\n"), 1;
  return 0;
}
