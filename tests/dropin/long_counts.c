/* The forms with 64-bit counts of what sets up or starts a collective, which a program finds in the
 * drop-in whatever the MPI behind it has. */
#define _GNU_SOURCE
#include "check.h"

typedef MPI_Count N;
#ifdef OPEN_MPI /* has none of these */
#pragma GCC visibility push(default)
int MPI_Bcast_init_c(void*, N, MPI_Datatype, int, MPI_Comm, MPI_Info, MPI_Request*)
    __attribute__((weak));
int MPI_Allreduce_init_c(const void*, void*, N, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Info,
                         MPI_Request*) __attribute__((weak));
int MPI_Reduce_scatter_init_c(const void*, void*, const N[], MPI_Datatype, MPI_Op, MPI_Comm,
                              MPI_Info, MPI_Request*) __attribute__((weak));
int MPI_Gatherv_init_c(const void*, N, MPI_Datatype, void*, const N[], const MPI_Aint[],
                       MPI_Datatype, int, MPI_Comm, MPI_Info, MPI_Request*) __attribute__((weak));
int MPI_Scatterv_init_c(const void*, const N[], const MPI_Aint[], MPI_Datatype, void*, N,
                        MPI_Datatype, int, MPI_Comm, MPI_Info, MPI_Request*) __attribute__((weak));
int MPI_Allgatherv_init_c(const void*, N, MPI_Datatype, void*, const N[], const MPI_Aint[],
                          MPI_Datatype, MPI_Comm, MPI_Info, MPI_Request*) __attribute__((weak));
int MPI_Alltoallv_init_c(const void*, const N[], const MPI_Aint[], MPI_Datatype, void*, const N[],
                         const MPI_Aint[], MPI_Datatype, MPI_Comm, MPI_Info, MPI_Request*)
    __attribute__((weak));
int MPI_Neighbor_alltoallv_init_c(const void*, const N[], const MPI_Aint[], MPI_Datatype, void*,
                                  const N[], const MPI_Aint[], MPI_Datatype, MPI_Comm, MPI_Info,
                                  MPI_Request*) __attribute__((weak));
int MPI_Ialltoallw_c(const void*, const N[], const MPI_Aint[], const MPI_Datatype[], void*,
                     const N[], const MPI_Aint[], const MPI_Datatype[], MPI_Comm, MPI_Request*)
    __attribute__((weak));
int MPI_Ineighbor_allgatherv_c(const void*, N, MPI_Datatype, void*, const N[], const MPI_Aint[],
                               MPI_Datatype, MPI_Comm, MPI_Request*) __attribute__((weak));
#pragma GCC visibility pop
#endif

enum { most = 16, rounds = 3 };

static int rank, ranks;
static int send[2 * most], receive[2 * most];

/* Arrays of the program, which are written over once the calls are over. */
static N counts[most], two[most];
static MPI_Aint places[most], twos[most];
static MPI_Datatype types[most];

static void set_arrays(MPI_Aint unit) {
  for (int i = 0; i < most; ++i) {
    counts[i] = two[i] = 2;
    places[i] = twos[i] = 2 * i * unit;
    types[i] = MPI_INT;
  }
}
static void spoil_arrays(void) {
  memset(counts, 0x7f, sizeof counts);
  memset(two, 0x7f, sizeof two);
  memset(places, 0x7f, sizeof places);
  memset(twos, 0x7f, sizeof twos);
}

static void fill(int round) {
  for (int i = 0; i < 2 * ranks; ++i) send[i] = 1000 * round + 100 * rank + i, receive[i] = -1;
}

typedef void Check(int round);

/* Each rank has what all others have sent it: the first two numbers of each, its own two of each,
 * and so on. */
static void check_gathered(int round) {
  for (int i = 0; i < 2 * ranks; ++i) {
    CHECK(receive[i] == 1000 * round + 100 * (i / 2) + i % 2);
  }
}
static void check_gathered_at_root(int round) {
  if (rank == 0) check_gathered(round);
}
static void check_exchanged(int round) {
  for (int i = 0; i < 2 * ranks; ++i) {
    CHECK(receive[i] == 1000 * round + 100 * (i / 2) + 2 * rank + i % 2);
  }
}
static void check_scattered(int round) {
  for (int i = 0; i < 2; ++i) CHECK(receive[i] == 1000 * round + 2 * rank + i);
}
static void check_sums(int round) {
  const int of_ranks = 100 * ranks * (ranks - 1) / 2;
  for (int i = 0; i < 2; ++i) CHECK(receive[i] == ranks * (1000 * round + i) + of_ranks);
}
static void check_own_sums(int round) {
  const int of_ranks = 100 * ranks * (ranks - 1) / 2;
  for (int i = 0; i < 2; ++i) {
    CHECK(receive[i] == ranks * (1000 * round + 2 * rank + i) + of_ranks);
  }
}
static void check_broadcast(int round) {
  for (int i = 0; i < 2; ++i) CHECK(send[i] == 1000 * round + i);
}

/* What a request of this call does in each of some rounds. */
static void run(int code, MPI_Request* request, Check* check) {
  CHECK(code == MPI_SUCCESS);
  for (int round = 0; round < rounds && code == MPI_SUCCESS; ++round) {
    fill(round);
    CHECK_CALL(MPI_Start(request));
    CHECK_CALL(MPI_Wait(request, MPI_STATUS_IGNORE));
    check(round);
  }
  CHECK_CALL(MPI_Request_free(request));
  spoil_arrays();
  set_arrays(1);
}

static void persistent(MPI_Comm comm) {
  MPI_Request q = MPI_REQUEST_NULL;
  const MPI_Info no = MPI_INFO_NULL;
  set_arrays(1);
  run(MPI_Bcast_init_c(send, 2, MPI_INT, 0, comm, no, &q), &q, check_broadcast);
  run(MPI_Allreduce_init_c(send, receive, 2, MPI_INT, MPI_SUM, comm, no, &q), &q, check_sums);
  run(MPI_Reduce_scatter_init_c(send, receive, counts, MPI_INT, MPI_SUM, comm, no, &q), &q,
      check_own_sums);
  const int root = rank == 0; /* what others pass means nothing */
  run(MPI_Gatherv_init_c(send, 2, MPI_INT, receive, root ? counts : NULL, root ? places : NULL,
                         MPI_INT, 0, comm, no, &q),
      &q, check_gathered_at_root);
  run(MPI_Scatterv_init_c(send, root ? counts : NULL, root ? places : NULL, MPI_INT, receive, 2,
                          MPI_INT, 0, comm, no, &q),
      &q, check_scattered);
  run(MPI_Allgatherv_init_c(send, 2, MPI_INT, receive, counts, places, MPI_INT, comm, no, &q), &q,
      check_gathered);
  run(MPI_Alltoallv_init_c(send, counts, places, MPI_INT, receive, two, twos, MPI_INT, comm, no,
                           &q),
      &q, check_exchanged);
}

/* A ring: what comes is from the rank below, and from the one above. */
static void check_ring(int round, int each) {
  const int from[2] = {(rank + ranks - 1) % ranks, (rank + 1) % ranks};
  for (int i = 0; i < 4; ++i) {
    const int place = each ? 2 * (1 - i / 2) : 0;
    CHECK(receive[i] == 1000 * round + 100 * from[i / 2] + place + i % 2);
  }
}
static void check_ring_of_each(int round) { check_ring(round, 1); }

static void neighbours(MPI_Comm comm) {
  MPI_Comm ring;
  MPI_Request q = MPI_REQUEST_NULL;
  const int yes = 1;
  MPI_Cart_create(comm, 1, &ranks, &yes, 0, &ring);
  set_arrays(1);
  run(MPI_Neighbor_alltoallv_init_c(send, counts, places, MPI_INT, receive, two, twos, MPI_INT,
                                    ring, MPI_INFO_NULL, &q),
      &q, check_ring_of_each);
  fill(7);
  CHECK_CALL(
      MPI_Ineighbor_allgatherv_c(send, 2, MPI_INT, receive, counts, places, MPI_INT, ring, &q));
  CHECK_CALL(MPI_Wait(&q, MPI_STATUS_IGNORE));
  check_ring(7, 0);
  set_arrays((MPI_Aint)sizeof(int));
  fill(8);
  CHECK_CALL(MPI_Ialltoallw_c(send, counts, places, types, receive, two, twos, types, comm, &q));
  CHECK_CALL(MPI_Wait(&q, MPI_STATUS_IGNORE));
  check_exchanged(8);
  MPI_Comm_free(&ring);
}

int main(int argc, char** argv) {
  int provided;
  const int wanted = argc > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, wanted, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  check_warm(MPI_COMM_WORLD);
  persistent(MPI_COMM_WORLD);
  neighbours(MPI_COMM_WORLD);
  return check_finish();
}
