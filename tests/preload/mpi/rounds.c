// Nonblocking reductions of a program with one thread, on several communicators: up to 100 of them
// under way, completed in any order, by ranks that go on at different speeds, between other calls.
// Every result is compared with what a loop over the ranks gives. Argument 1 is the number of
// cases.
#ifdef ROPEWALK_TEST_ABI
#include <mpi_abi.h>
#else
#include <mpi.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { most_under_way = 100, most_count = 20000, kinds = 4 };

static unsigned long long shared_state, own_state;  // the first is the same on all ranks
static unsigned below(unsigned long long* state, unsigned limit) {
  *state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
  return (unsigned)(*state >> 33) % limit;
}

static int failures, world_rank;

struct Reduction {
  MPI_Comm comm;
  int kind, count, root, rank, ranks, number, gets;
  long long *sent, *got;
  MPI_Request request;
};

static long long element(int rank, int number, int i) { return rank * 1000003LL + number + i % 97; }

// The element `i` of a vector of which each rank has one.
static long long sum_of(const struct Reduction* r, int i) {
  long long sum = 0;
  for (int rank = 0; rank < r->ranks; ++rank) sum += element(rank, r->number, i);
  return sum;
}

static void start(struct Reduction* r) {
  MPI_Comm_rank(r->comm, &r->rank);
  MPI_Comm_size(r->comm, &r->ranks);
  const int total = r->kind == 2 ? r->count * r->ranks : r->count;
  r->root %= r->ranks;
  r->sent = malloc(sizeof(long long) * (size_t)(total + 1));
  r->got = malloc(sizeof(long long) * (size_t)(total + 1));
  for (int i = 0; i < total; ++i) r->sent[i] = r->got[i] = element(r->rank, r->number, i);
  r->gets = r->kind != 1 || r->rank == r->root;
  switch (r->kind) {
    case 0:
      MPI_Iallreduce(r->sent, r->got, r->count, MPI_LONG_LONG, MPI_SUM, r->comm, &r->request);
      break;
    case 1:
      MPI_Ireduce(r->sent, r->got, r->count, MPI_LONG_LONG, MPI_SUM, r->root, r->comm, &r->request);
      break;
    case 2:
      MPI_Ireduce_scatter_block(r->sent, r->got, r->count, MPI_LONG_LONG, MPI_SUM, r->comm,
                                &r->request);
      break;
    default:
      MPI_Iallreduce(MPI_IN_PLACE, r->got, r->count, MPI_LONG_LONG, MPI_SUM, r->comm, &r->request);
  }
}

static void check(struct Reduction* r) {
  const int first = r->kind == 2 ? r->rank * r->count : 0;
  for (int i = 0; r->gets && i < r->count; ++i) {
    if (r->got[i] == sum_of(r, first + i)) continue;
    fprintf(stderr, "rank %d: reduction %d of kind %d, element %d: %lld, not %lld\n", world_rank,
            r->number, r->kind, i, r->got[i], sum_of(r, first + i));
    ++failures;
    break;
  }
  free(r->sent);
  free(r->got);
}

// Completes one, as this rank likes.
static void complete_some(struct Reduction* all, int number) {
  MPI_Request requests[most_under_way];
  int indices[most_under_way], done = 0, flag = 0;
  for (int i = 0; i < number; ++i) requests[i] = all[i].request;
  switch (below(&own_state, 5)) {
    case 0:
      MPI_Waitany(number, requests, indices, MPI_STATUS_IGNORE);
      done = indices[0] != MPI_UNDEFINED;
      break;
    case 1:
      MPI_Testsome(number, requests, &done, indices, MPI_STATUSES_IGNORE);
      if (done == MPI_UNDEFINED) done = 0;
      break;
    case 2:
      MPI_Testany(number, requests, indices, &flag, MPI_STATUS_IGNORE);
      done = flag && indices[0] != MPI_UNDEFINED;
      break;
    case 3:
      indices[0] = (int)below(&own_state, (unsigned)number);
      MPI_Test(requests + indices[0], &flag, MPI_STATUS_IGNORE);
      done = flag && all[indices[0]].request != MPI_REQUEST_NULL;
      break;
    default:
      MPI_Request_get_status(requests[number - 1], &flag, MPI_STATUS_IGNORE);
  }
  for (int i = 0; i < done; ++i) check(&all[indices[i]]);
  for (int i = 0; i < number; ++i) all[i].request = requests[i];
}

// The ranks start so many, and each completes some of them meanwhile.
static void run(MPI_Comm* comms, int number) {
  static struct Reduction all[most_under_way];
  int next = (world_rank + 1) % 2, from = -1;
  for (int i = 0; i < number; ++i) {
    const unsigned large = below(&shared_state, 4);
    struct Reduction* r = &all[i];
    r->comm = comms[below(&shared_state, 3)];
    r->kind = (int)below(&shared_state, kinds);
    r->count = (int)below(&shared_state, large == 0 ? most_count : large == 1 ? 20 : 2000);
    r->root = (int)below(&shared_state, 8);
    r->number = i;
    start(r);
    if (below(&own_state, 3) == 0) complete_some(all, i + 1);
    if (below(&own_state, 40) == 0) usleep(300);
    if (below(&shared_state, 20) == 0) MPI_Barrier(comms[0]);
    if (below(&shared_state, 20) == 0 && world_rank < 2) {
      MPI_Sendrecv(&world_rank, 1, MPI_INT, next, 3, &from, 1, MPI_INT, next, 3, MPI_COMM_WORLD,
                   MPI_STATUS_IGNORE);
      failures += from != next;
    }
  }
  // Those that are complete already have no request any more.
  for (int i = number - 1; i >= 0; --i) {
    if (all[i].request == MPI_REQUEST_NULL) continue;
    MPI_Wait(&all[i].request, MPI_STATUS_IGNORE);
    check(&all[i]);
  }
}

// A rank goes on as far as it may, before the root has received anything.
static void run_ahead(void) {
  enum { count = 4096 };
  static long long mine[count], sum[count];
  int ranks;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (world_rank == 0) usleep(20000);
  for (int i = 0; i < 200; ++i) {
    MPI_Request request;
    mine[0] = i;
    MPI_Ireduce(mine, sum, count, MPI_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (world_rank == 0) failures += sum[0] != (long long)i * ranks;
  }
}

// From here on a wait that is over makes MPI progress, which looks at all requests.
static MPI_Win make_window(void) {
  MPI_Win window;
  MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  return window;
}

int main(int argc, char** argv) {
  MPI_Comm comms[3];
  MPI_Win window = MPI_WIN_NULL;
  const int cases = argc > 1 ? atoi(argv[1]) : 20;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  own_state = 77 + (unsigned)world_rank;
  shared_state = 5;
  for (int test = 0; test < cases; ++test) {
    if (test == cases / 2) window = make_window();
    comms[0] = MPI_COMM_WORLD;
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
    MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, -world_rank, &comms[2]);
    for (int i = 0; i < 3; ++i) {
      for (int call = 0; call < 3; ++call) MPI_Barrier(comms[i]);
    }
    run(comms, 1 + (int)below(&shared_state, most_under_way));
    MPI_Comm_free(&comms[1]);
    MPI_Comm_free(&comms[2]);
  }
  run_ahead();
  if (window != MPI_WIN_NULL) MPI_Win_free(&window);
  MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (world_rank == 0) printf("rounds: %d cases, %d failures\n", cases, failures);
  MPI_Finalize();
  return failures != 0;
}
