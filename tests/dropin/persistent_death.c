/* A rank is killed before it begins a round of a persistent collective, or a nonblocking one, or
 * before it receives what the others send to it by persistent sends, and each of them must get an
 * error that names it.
 * Every rank is a child of the process that the launcher knows, so that the launcher does not end
 * the others.
 *
 *   persistent_death ELEMENTS|send|nonblocking FILE
 *
 * What each has got is appended to the file, since the launcher loses what ranks print last.
 */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { victim = 1, survivors = 2, rounds = 3, seconds = 20 };

/* Waits for a round by MPI_Test, so that a rank that finds nothing still ends. */
static int finish(MPI_Request* request) {
  const double end = MPI_Wtime() + seconds;
  int flag = 0, code = 0;
  while (flag == 0 && code == 0 && MPI_Wtime() < end) {
    code = MPI_Test(request, &flag, MPI_STATUS_IGNORE);
  }
  return code;
}

static int lines_in(const char* name) {
  FILE* file = fopen(name, "r");
  int lines = 0, c = 0;
  if (file == NULL) return 0;
  while ((c = fgetc(file)) != EOF) lines += c == '\n';
  fclose(file);
  return lines;
}

/* The launcher ends all ranks when one of its processes has ended. */
static int run_as_child(char** argv) {
  const pid_t child = fork();
  if (child == 0) {
    execl("/proc/self/exe", argv[0], argv[1], argv[2], "child", (char*)NULL);
    _exit(2);
  }
  waitpid(child, NULL, 0);
  for (int i = 0; i < 100 * seconds && lines_in(argv[2]) < survivors; ++i) usleep(10000);
  return 0;
}

/* The same collective at each call. */
static void start_nonblocking(MPI_Request* request) {
  enum { count = 1000 };
  static double in[count], out[count];
  MPI_Iallreduce(in, out, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, request);
}

/* A collective, or with `send` a message to the victim. */
static void set_up(const char* what, int rank, MPI_Request* request) {
  double *in, *out;
  const int sends = strcmp(what, "send") == 0, count = sends ? 40000 : atoi(what);
  if (strcmp(what, "nonblocking") == 0) {
    for (int round = 0; round < rounds; ++round) {
      start_nonblocking(request);
      CHECK_CALL(MPI_Wait(request, MPI_STATUS_IGNORE));
    }
    return;
  }
  MPI_Alloc_mem((MPI_Aint)sizeof(double) * count, MPI_INFO_NULL, &in);
  MPI_Alloc_mem((MPI_Aint)sizeof(double) * count, MPI_INFO_NULL, &out);
  for (int i = 0; i < count; ++i) in[i] = rank;
  if (sends) {
    MPI_Send_init(in, count, MPI_DOUBLE, victim, 5, MPI_COMM_WORLD, request);
    return;
  }
  MPI_Allreduce_init(in, out, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, request);
  for (int round = 0; round < rounds; ++round) {
    CHECK_CALL(MPI_Start(request));
    CHECK_CALL(MPI_Wait(request, MPI_STATUS_IGNORE));
  }
}

static void tell(const char* name, int rank, int code) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  FILE* file = fopen(name, "a");
  if (file == NULL) _exit(1);
  if (code != 0) MPI_Error_string(code, text, &length);
  /* The second of two survivors may name the first, which has found a dead rank. */
  const int named =
      strstr(text, "rank 1 ") != NULL || strstr(text, "has found a dead rank") != NULL;
  fprintf(file, "%s: rank %d: %s\n", named ? "named" : "not named", rank, text);
  fclose(file);
}

int main(int argc, char** argv) {
  int rank;
  MPI_Request request;
  if (argc == 3) return run_as_child(argv);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  check_warm(MPI_COMM_WORLD);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  set_up(argv[1], rank, &request);
  if (rank == victim) raise(SIGKILL);
  if (strcmp(argv[1], "nonblocking") == 0) {
    start_nonblocking(&request);
  } else {
    MPI_Start(&request);
  }
  tell(argv[2], rank, finish(&request));
  sleep(2); /* who leaves is as dead as the victim */
  _exit(0);
}
