/* Every rank sends large messages to every other one, over nodes that ROPEWALK_NODES pretends. How
 * many of them went through memory is in the drop-in's statistics (CMakeLists.txt): those between
 * ranks of one node, and no other. Half of the receives take messages from any rank, but not where
 * they are `named`.
 *
 *   message_nodes ROUNDS [named]
 */
#include "check.h"

enum { count = 40000, bytes = count * 4 }; /* above messages.envelope_bytes */

static int rank, size, named;

/* Element i of a message. */
static int element(int from, int to, int round, int i) {
  return from * 7919 + to * 104729 + round * 1299709 + i;
}

static void check_message(const int* data, const MPI_Status* status, int from, int round) {
  int got = -1, same = 1;
  MPI_Get_count(status, MPI_INT, &got);
  CHECK(got == count && status->MPI_SOURCE == from && status->MPI_TAG == from);
  for (int i = 0; i < count; ++i) same = same && data[i] == element(from, rank, round, i);
  CHECK(same);
}

static void all_to_all(int round, int* out, int* in, MPI_Comm comm) {
  MPI_Request* requests = malloc((size_t)size * sizeof *requests);
  MPI_Status* statuses = malloc((size_t)size * sizeof *statuses);
  for (int from = 0; from < size; ++from) {
    requests[from] = MPI_REQUEST_NULL;
    if (from == rank) continue;
    memset(in + from * count, 0xee, bytes);
    const int source = named || round % 2 == 0 ? from : MPI_ANY_SOURCE;
    CHECK_CALL(MPI_Irecv(in + from * count, count, MPI_INT, source, from, comm, &requests[from]));
  }
  for (int step = 1; step < size; ++step) {
    const int to = (rank + step) % size;
    for (int i = 0; i < count; ++i) out[i] = element(rank, to, round, i);
    CHECK_CALL(MPI_Send(out, count, MPI_INT, to, rank, comm));
  }
  CHECK_CALL(MPI_Waitall(size, requests, statuses));
  for (int from = 0; from < size; ++from) {
    if (from != rank) check_message(in + from * count, &statuses[from], from, round);
  }
  free(statuses);
  free(requests);
}

/* Rank 0 waits in a broadcast for the last rank, which waits for rank 1, whose message rank 0 is to
 * take. */
static void in_broadcast(int* out, int* in) {
  const int last = size - 1;
  int word = 5;
  MPI_Request request = MPI_REQUEST_NULL;
  if (rank == 0) CHECK_CALL(MPI_Irecv(in, count, MPI_INT, 1, 1, MPI_COMM_WORLD, &request));
  if (rank == 1) {
    for (int i = 0; i < count; ++i) out[i] = i;
    CHECK_CALL(MPI_Send(out, count, MPI_INT, 0, 1, MPI_COMM_WORLD));
    CHECK_CALL(MPI_Send(&word, 1, MPI_INT, last, 2, MPI_COMM_WORLD));
  }
  if (rank == last) {
    CHECK_CALL(MPI_Recv(&word, 1, MPI_INT, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    word = 6;
  }
  CHECK_CALL(MPI_Bcast(&word, 1, MPI_INT, last, MPI_COMM_WORLD));
  CHECK_CALL(MPI_Wait(&request, MPI_STATUS_IGNORE));
  CHECK(word == 6 && (rank != 0 || (in[0] == 0 && in[count - 1] == count - 1)));
}

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? atoi(argv[1]) : 1;
  int *out, *in;
  MPI_Comm turned;
  named = argc > 2;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Alloc_mem(bytes, MPI_INFO_NULL, &out);
  MPI_Alloc_mem((MPI_Aint)bytes * size, MPI_INFO_NULL, &in);
  check_warm(MPI_COMM_WORLD);
  for (int round = 0; round < rounds; ++round) all_to_all(round, out, in, MPI_COMM_WORLD);
  in_broadcast(out, in);
  /* In here ranks have other numbers than in MPI_COMM_WORLD. */
  MPI_Comm_split(MPI_COMM_WORLD, 0, size - rank, &turned);
  MPI_Comm_rank(turned, &rank);
  for (int round = 0; round < rounds; ++round) all_to_all(round, out, in, turned);
  MPI_Comm_free(&turned);
  MPI_Free_mem(out);
  MPI_Free_mem(in);
  return check_finish();
}
