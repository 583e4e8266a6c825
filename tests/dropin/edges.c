/* Calls at the edges of MPI's life, and errors.
 *
 *   edges                 what is allowed before MPI_Init and after MPI_Finalize; errors returned
 *                         to a program that asks for it are of the same class by MPI_X and PMPI_X
 *   edges before | after  an MPI_Allreduce there: an error of the MPI, which ends the program
 *   edges fatal           an error under MPI_ERRORS_ARE_FATAL, which ends the program
 *   edges exit            exit without MPI_Finalize, with status 0
 *
 * The communicators are those that the drop-in serves, wherever there is one. */
#include "check.h"

static int class_of(int error) {
  int class = -1;
  if (error == MPI_SUCCESS) return MPI_SUCCESS;
  MPI_Error_class(error, &class);
  return class;
}

#define SAME(name, ...)                                                                    \
  do {                                                                                     \
    int mine = class_of(name(__VA_ARGS__));                                                \
    int plain = class_of(P##name(__VA_ARGS__));                                            \
    if (mine != plain) {                                                                   \
      fprintf(stderr, "%s(%s): class %d, by PMPI %d\n", #name, #__VA_ARGS__, mine, plain); \
      ++check_failures;                                                                    \
    }                                                                                      \
  } while (0)

static int handled;

static void handler(MPI_Comm* comm, int* error, ...) {
  (void)comm;
  handled = *error;
}

static void errors(void) {
  int a[4] = {1, 2, 3, 4}, b[4] = {0}, ranks;
  MPI_Comm comm, null = MPI_COMM_NULL;
  MPI_Errhandler own;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); /* an error without communicator */
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  check_warm(comm);
  SAME(MPI_Allreduce, a, b, 1, MPI_INT, MPI_SUM, null);
  SAME(MPI_Allreduce, a, b, 1, MPI_INT, MPI_OP_NULL, comm);
  SAME(MPI_Bcast, a, 1, MPI_INT, ranks, comm);
  SAME(MPI_Bcast, a, 1, MPI_INT, -5, comm);
  SAME(MPI_Reduce, a, b, 1, MPI_INT, MPI_SUM, ranks + 3, comm);
  SAME(MPI_Barrier, null);
  SAME(MPI_Gather, a, 1, MPI_INT, b, 1, MPI_INT, -9, comm);
  MPI_Comm_create_errhandler(handler, &own);
  MPI_Comm_set_errhandler(comm, own);
  handled = 0;
  int result = class_of(MPI_Bcast(a, 1, MPI_INT, ranks, comm)), seen = handled;
  handled = 0;
  CHECK(result == class_of(PMPI_Bcast(a, 1, MPI_INT, ranks, comm)));
  CHECK(class_of(seen) == class_of(handled));
  MPI_Errhandler_free(&own);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  CHECK_CALL(MPI_Allreduce(a, b, 4, MPI_INT, MPI_SUM, comm)); /* and it still works */
  CHECK(b[3] == 4 * ranks);
  MPI_Comm_free(&comm);
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  int flag = -1, version = 0, subversion = 0, a = 1, b = 0, failed = 0;
  if (strcmp(what, "before") == 0) MPI_Allreduce(&a, &b, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  failed += MPI_Initialized(&flag) != MPI_SUCCESS || flag != 0;
  failed += MPI_Finalized(&flag) != MPI_SUCCESS || flag != 0;
  failed += MPI_Get_version(&version, &subversion) != MPI_SUCCESS || version < 3;
  MPI_Init(&argc, &argv);
  check_warm(MPI_COMM_WORLD);
  if (strcmp(what, "fatal") == 0) MPI_Bcast(&a, 1, MPI_INT, 12345, MPI_COMM_WORLD);
  MPI_Allreduce(&a, &b, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (strcmp(what, "exit") == 0) exit(0);
  if (*what == '\0') errors();
  failed += check_failures;
  MPI_Finalize();
  failed += MPI_Finalized(&flag) != MPI_SUCCESS || flag == 0;
  failed += MPI_Initialized(&flag) != MPI_SUCCESS || flag == 0;
  if (strcmp(what, "after") == 0) MPI_Allreduce(&a, &b, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (failed) fprintf(stderr, "edges.c: %d checks failed\n", failed);
  return failed != 0;
}
