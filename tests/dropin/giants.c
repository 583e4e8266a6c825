/* Derived types of which one element is larger than an int counts, and large ones in any order.
 *
 * Nothing is sent of the giants: a call with count 0 must know what they are without touching what
 * nobody has. Of the others every byte is looked at. */
#include "check.h"

enum { edge = 1 << 16 };

static void nothing(void* in, void* inout, int* count, MPI_Datatype* type) {
  (void)in;
  (void)inout;
  (void)count;
  (void)type;
}

static void send_nothing(MPI_Datatype type) {
  char a = 1, b[8] = {2, 2, 2, 2, 2, 2, 2, 2};
  MPI_Op op;
  CHECK_CALL(MPI_Type_commit(&type));
  CHECK_CALL(MPI_Bcast(&a, 0, type, 0, MPI_COMM_WORLD));
  CHECK_CALL(MPI_Allgather(&a, 0, type, b, 0, type, MPI_COMM_WORLD));
  CHECK_CALL(MPI_Op_create(&nothing, 1, &op));
  CHECK_CALL(MPI_Allreduce(&a, b, 0, type, op, MPI_COMM_WORLD));
  CHECK_CALL(MPI_Op_free(&op));
  CHECK(a == 1 && b[0] == 2);
  CHECK_CALL(MPI_Type_free(&type));
}

/* 64 KiB x 64 KiB = 4 GiB, and its like. */
static void giants(void) {
  MPI_Datatype row, all, two;
  int lengths[2] = {edge / 2, edge / 2}, swapped[2] = {edge / 2, 0};
  CHECK_CALL(MPI_Type_contiguous(edge, MPI_BYTE, &row));
  CHECK_CALL(MPI_Type_contiguous(edge, row, &all));
  send_nothing(all);
  CHECK_CALL(MPI_Type_vector(edge, 1, 2, row, &all));
  send_nothing(all);
  CHECK_CALL(MPI_Type_vector(edge / 8, 8, 8, row, &all));
  CHECK_CALL(MPI_Type_dup(all, &two));
  CHECK_CALL(MPI_Type_free(&all));
  send_nothing(two);
  CHECK_CALL(MPI_Type_indexed(2, lengths, swapped, row, &all));
  send_nothing(all);
  CHECK_CALL(MPI_Type_free(&row));
}

/* A type of `bytes` bytes without gaps: what rank 0 sends byte for byte arrives, whatever the order
 * in which its type says them. */
static void check_large(MPI_Datatype type, int bytes) {
  unsigned char *data = malloc((size_t)bytes), *ordered = malloc((size_t)bytes);
  int rank, position = 0, i, wrong = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  CHECK_CALL(MPI_Type_commit(&type));
  for (i = 0; i < bytes; ++i) data[i] = rank == 0 ? (unsigned char)(i * 7 + i / 251) : 0;
  /* Rank 0 sends the elements of the type, the others receive them in the order of the type map. */
  if (rank == 0) {
    CHECK_CALL(MPI_Bcast(data, 1, type, 0, MPI_COMM_WORLD));
    CHECK_CALL(MPI_Pack(data, 1, type, ordered, bytes, &position, MPI_COMM_SELF));
  } else {
    CHECK_CALL(MPI_Bcast(data, bytes, MPI_BYTE, 0, MPI_COMM_WORLD));
  }
  if (rank != 0) memcpy(ordered, data, (size_t)bytes);
  CHECK_CALL(PMPI_Bcast(rank == 0 ? ordered : data, bytes, MPI_BYTE, 0, MPI_COMM_WORLD));
  for (i = 0; rank != 0 && i < bytes; ++i) wrong += ordered[i] != data[i];
  CHECK(wrong == 0);
  CHECK_CALL(MPI_Type_free(&type));
  free(data);
  free(ordered);
}

static void large(void) {
  enum { side = 512 };
  MPI_Datatype row, all;
  int lengths[2] = {side / 2, side / 2}, swapped[2] = {side / 2, 0};
  int sizes[2] = {side, side}, starts[2] = {0, 0}, ranks = 1;
  int cyclic[2] = {MPI_DISTRIBUTE_NONE, MPI_DISTRIBUTE_NONE};
  int whole[2] = {MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG}, grid[2] = {1, 1};
  CHECK_CALL(MPI_Type_contiguous(side, MPI_BYTE, &row));
  CHECK_CALL(MPI_Type_contiguous(side, row, &all));
  check_large(all, side * side);
  CHECK_CALL(MPI_Type_indexed(2, lengths, swapped, row, &all));
  check_large(all, side * side);
  CHECK_CALL(MPI_Type_create_subarray(2, sizes, sizes, starts, MPI_ORDER_FORTRAN, MPI_BYTE, &all));
  check_large(all, side * side);
  CHECK_CALL(
      MPI_Type_create_darray(ranks, 0, 2, sizes, cyclic, whole, grid, MPI_ORDER_C, MPI_BYTE, &all));
  check_large(all, side * side);
  CHECK_CALL(MPI_Type_free(&row));
}

/* Elements without data, and an operation of the user. */
static void empty(void) {
  MPI_Datatype none, spaced;
  MPI_Op op;
  int a = 1, b = 2;
  CHECK_CALL(MPI_Type_contiguous(0, MPI_INT, &none));
  CHECK_CALL(MPI_Type_create_resized(none, 0, 8, &spaced));
  CHECK_CALL(MPI_Type_commit(&none));
  CHECK_CALL(MPI_Type_commit(&spaced));
  CHECK_CALL(MPI_Op_create(&nothing, 1, &op));
  CHECK_CALL(MPI_Allreduce(&a, &b, 3, none, op, MPI_COMM_WORLD));
  CHECK_CALL(MPI_Allreduce(&a, &b, 3, spaced, op, MPI_COMM_WORLD));
  CHECK_CALL(MPI_Reduce(&a, &b, 3, none, op, 0, MPI_COMM_WORLD));
  CHECK_CALL(MPI_Scan(&a, &b, 3, none, op, MPI_COMM_WORLD));
  CHECK_CALL(MPI_Reduce_scatter_block(&a, &b, 3, none, op, MPI_COMM_WORLD));
  CHECK(b == 2);
  CHECK_CALL(MPI_Op_free(&op));
  CHECK_CALL(MPI_Type_free(&none));
  CHECK_CALL(MPI_Type_free(&spaced));
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  MPI_Init(&argc, &argv);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  if (strcmp(what, "empty") == 0) empty();
  if (strcmp(what, "large") == 0) large();
  if (strcmp(what, "giants") == 0) giants();
  return check_finish();
}
