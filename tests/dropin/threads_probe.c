/* One thread of rank 1 receives while another probes for whatever there is, which takes large
 * messages out of MPI. A third waits in a probe since before the ranks have met.
 *
 *   threads_probe [MESSAGES [BYTES]] */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>

#include "check.h"

static int messages = 20000, bytes = 4096, rank;
static atomic_int over;

static void* probe_all(void* unused) {
  while (!atomic_load(&over)) {
    int flag = 0;
    MPI_Status status;
    CHECK_CALL(MPI_Iprobe(MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &flag, &status));
    if (!flag) continue;
    int count = -1;
    MPI_Get_count(&status, MPI_BYTE, &count);
    CHECK(count == bytes);
  }
  return unused;
}

/* It takes what is probed for, and probes by MPI_Probe for the first and by MPI_Mprobe for the
 * second. */
static void* probe_early(void* room) {
  for (int i = 0; i < 2; ++i) {
    int count = -1;
    MPI_Status status;
    MPI_Message found;
    if (i == 0) {
      CHECK_CALL(MPI_Probe(0, 6, MPI_COMM_WORLD, &status));
    } else {
      CHECK_CALL(MPI_Mprobe(0, 6, MPI_COMM_WORLD, &found, &status));
    }
    MPI_Get_count(&status, MPI_BYTE, &count);
    CHECK(count == bytes);
    if (i == 0) {
      CHECK_CALL(MPI_Recv(room, bytes, MPI_BYTE, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    } else {
      CHECK_CALL(MPI_Mrecv(room, bytes, MPI_BYTE, &found, MPI_STATUS_IGNORE));
    }
    CHECK(*(unsigned char*)room == 20 + i);
  }
  return room;
}

/* So many are under way at a time, so that a probe finds some that nobody has received yet. */
enum { window = 8 };

static void send_all(unsigned char* data) {
  MPI_Request sent[window];
  for (int i = 0; i < 2; ++i) {
    memset(data, 20 + i, (size_t)bytes);
    CHECK_CALL(MPI_Send(data, bytes, MPI_BYTE, 1, 6, MPI_COMM_WORLD));
  }
  for (int i = 0; i < window; ++i) sent[i] = MPI_REQUEST_NULL;
  for (int i = 0; i < messages; ++i) {
    unsigned char* own = data + (size_t)(i % window) * (size_t)bytes;
    CHECK_CALL(MPI_Wait(&sent[i % window], MPI_STATUS_IGNORE));
    memset(own, i & 127, (size_t)bytes);
    CHECK_CALL(MPI_Isend(own, bytes, MPI_BYTE, 1, 5, MPI_COMM_WORLD, &sent[i % window]));
  }
  CHECK_CALL(MPI_Waitall(window, sent, MPI_STATUSES_IGNORE));
}

static void receive_all(unsigned char* room) {
  for (int i = 0; i < messages; ++i) {
    CHECK_CALL(MPI_Recv(room, bytes, MPI_BYTE, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(room[0] == (i & 127) && room[bytes - 1] == (i & 127));
  }
  atomic_store(&over, 1);
}

int main(int argc, char** argv) {
  int provided;
  pthread_t probing[2];
  void *first, *second;
  if (argc > 1) messages = atoi(argv[1]);
  if (argc > 2) bytes = atoi(argv[2]);
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (provided < MPI_THREAD_MULTIPLE) {
    if (rank == 0) puts("skipped: this MPI has no MPI_THREAD_MULTIPLE");
    MPI_Finalize();
    return 77;
  }
  MPI_Alloc_mem((MPI_Aint)bytes * window, MPI_INFO_NULL, &first);
  MPI_Alloc_mem(bytes, MPI_INFO_NULL, &second);
  if (rank == 1) pthread_create(&probing[0], NULL, probe_early, second);
  check_warm(MPI_COMM_WORLD);
  if (rank == 0) send_all(first);
  if (rank == 1) {
    pthread_create(&probing[1], NULL, probe_all, NULL);
    receive_all(first);
    for (int i = 0; i < 2; ++i) pthread_join(probing[i], NULL);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Free_mem(first);
  MPI_Free_mem(second);
  return check_finish();
}
