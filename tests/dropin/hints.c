/* Messages through memory, over communicators that were told that receives are exact and that none
 * takes any tag, although a probe looks for a message among others. */
#include "check.h"

enum { bytes = 1 << 20 };

static unsigned char* buffer;
static int rank;

static void expect_filled(unsigned char with) {
  int same = 1;
  for (int i = 0; i < bytes; ++i) same = same && buffer[i] == with;
  CHECK(same);
}

static void pass(MPI_Comm comm, unsigned char with) {
  MPI_Status status;
  int count;
  memset(buffer, rank == 0 ? with : 0, bytes);
  if (rank == 0) {
    MPI_Request request;
    CHECK_CALL(MPI_Isend(&with, 1, MPI_BYTE, 1, 1, comm, &request));
    CHECK_CALL(MPI_Send(buffer, bytes, MPI_BYTE, 1, 2, comm));
    CHECK_CALL(MPI_Wait(&request, MPI_STATUS_IGNORE));
    return;
  }
  if (with % 2 == 0) { /* the large message first */
    CHECK_CALL(MPI_Probe(0, 2, comm, &status));
    CHECK_CALL(MPI_Get_count(&status, MPI_BYTE, &count));
    CHECK(count == bytes);
  }
  CHECK_CALL(MPI_Recv(buffer, bytes, MPI_BYTE, 0, 2, comm, &status));
  CHECK_CALL(MPI_Get_count(&status, MPI_BYTE, &count));
  CHECK(count == bytes);
  expect_filled(with);
  CHECK_CALL(MPI_Recv(buffer, 1, MPI_BYTE, 0, 1, comm, MPI_STATUS_IGNORE));
  CHECK(buffer[0] == with);
}

/* MPI has not been told. */
static void expect_untold(MPI_Comm comm, const char* hint) {
  MPI_Info hints;
  char value[8] = "";
  int has = 0;
  CHECK_CALL(MPI_Comm_get_info(comm, &hints));
  MPI_Info_get(hints, hint, 7, value, &has);
  CHECK(!has || strcmp(value, "true") != 0);
  MPI_Info_free(&hints);
}

static void pass_all(MPI_Comm comm) {
  expect_untold(comm, "mpi_assert_exact_length");
  expect_untold(comm, "mpi_assert_no_any_tag");
  for (unsigned char with = 1; with <= 4; ++with) pass(comm, with);
}

int main(int argc, char** argv) {
  MPI_Comm told, made, later;
  MPI_Info hints;
  MPI_Request request;
  char value[8];
  int has;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Alloc_mem(bytes, MPI_INFO_NULL, &buffer);
  check_warm(MPI_COMM_WORLD);
  MPI_Info_create(&hints);
  MPI_Info_set(hints, "mpi_assert_exact_length", "true");
  MPI_Info_set(hints, "mpi_assert_no_any_tag", "true");
  MPI_Comm_dup(MPI_COMM_WORLD, &told);
  CHECK_CALL(MPI_Comm_set_info(told, hints));
  CHECK_CALL(MPI_Comm_dup_with_info(MPI_COMM_WORLD, hints, &made));
  CHECK_CALL(MPI_Comm_idup_with_info(MPI_COMM_WORLD, hints, &later, &request));
  CHECK_CALL(MPI_Wait(&request, MPI_STATUS_IGNORE));
  /* The program's own object is as it was. */
  MPI_Info_get(hints, "mpi_assert_exact_length", 7, value, &has);
  CHECK(has && strcmp(value, "true") == 0);
  MPI_Info_free(&hints);
  MPI_Comm all[] = {told, made, later};
  for (int i = 0; i < 3; ++i) {
    pass_all(all[i]);
    MPI_Comm_free(&all[i]);
  }
  CHECK_CALL(MPI_Comm_dup_with_info(MPI_COMM_WORLD, MPI_INFO_NULL, &made));
  pass_all(made);
  MPI_Comm_free(&made);
  MPI_Free_mem(buffer);
  return check_finish();
}
