// pending [types]: nonblocking collectives that are under way when their communicator is freed, and
// the datatypes they keep (which alone `types` checks). Run with ROPEWALK_NONBLOCKING=1.
#include <dlfcn.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <vector>

#include "the_mpi.hpp"

namespace {

std::atomic<bool> refuse_threads{false};
std::atomic<bool> refused{false};

}  // namespace

extern "C" __attribute__((visibility("default"))) int pthread_create(
    pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*), void* argument) {
  using Create = int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static auto* const original = reinterpret_cast<Create*>(dlsym(RTLD_NEXT, "pthread_create"));
  if (!refuse_threads) return original(thread, attributes, body, argument);
  refused = true;
  return EAGAIN;
}

namespace {

using namespace test;

constexpr int count = 100'000;  // doubles: large enough to be served

MPI_Comm served_duplicate() {
  MPI_Comm made;
  PMPI_Comm_dup(MPI_COMM_WORLD, &made);
  for (int i = 0; i < 3; ++i) MPI_Barrier(made);
  return made;
}

// A served call is a generalised request: MPI cannot cancel one of its own collectives, but is
// asked nothing here of any other kind.
void expect_sum(const std::vector<double>& sums, double expected, const char* what) {
  const bool same = std::all_of(sums.begin(), sums.end(), [&](double x) { return x == expected; });
  expect(same, what);
}

// Rank 0 frees, then lets the others begin. MPI frees at once, and ends what is under way.
void freed() {
  const int rank = rank_of(MPI_COMM_WORLD);
  const int size = size_of(MPI_COMM_WORLD);
  for (int round = 0; round < 10; ++round) {
    MPI_Comm comm = served_duplicate();
    const std::vector<double> mine(count, rank + round);
    std::array<std::vector<double>, 3> sums;
    std::array<MPI_Request, 3> requests{};
    const int calls = 1 + round % 3;
    int token = round;
    if (rank != 0) MPI_Recv(&token, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int call = 0; call < calls; ++call) {
      auto& sum = sums[static_cast<std::size_t>(call)];
      sum.assign(count, -1);
      MPI_Iallreduce(mine.data(), sum.data(), count, MPI_DOUBLE, MPI_SUM, comm,
                     &requests[static_cast<std::size_t>(call)]);
    }
    MPI_Comm_free(&comm);
    // The handle may be another's now, and its calls served by another team.
    MPI_Comm other;
    PMPI_Comm_dup(MPI_COMM_SELF, &other);
    for (int peer = 1; rank == 0 && peer < size; ++peer) {
      MPI_Send(&token, 1, MPI_INT, peer, 5, MPI_COMM_WORLD);
    }
    MPI_Waitall(calls, requests.data(), MPI_STATUSES_IGNORE);
    for (int call = 0; call < calls; ++call) {
      expect_sum(sums[static_cast<std::size_t>(call)], size * (size - 1) / 2.0 + round * size,
                 "an allreduce whose communicator was freed");
    }
    MPI_Comm_free(&other);
  }
}

// The neighbourhood stays as long as what was started on it.
void freed_ring() {
  const int rank = rank_of(MPI_COMM_WORLD);
  const int size = size_of(MPI_COMM_WORLD);
  for (int round = 0; round < 5; ++round) {
    const int period = 1;
    MPI_Comm comm;
    PMPI_Cart_create(MPI_COMM_WORLD, 1, &size, &period, 0, &comm);
    for (int i = 0; i < 3; ++i) MPI_Barrier(comm);
    const std::vector<double> mine(2 * count, rank + round);
    std::vector<double> both(2 * count, -1);
    MPI_Request request;
    MPI_Ineighbor_alltoall(mine.data(), count, MPI_DOUBLE, both.data(), count, MPI_DOUBLE, comm,
                           &request);
    MPI_Comm_free(&comm);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    const std::vector<double> left(both.begin(), both.begin() + count);
    const std::vector<double> right(both.begin() + count, both.end());
    expect_sum(left, (rank + size - 1) % size + round, "the left block of a ring that was freed");
    expect_sum(right, (rank + 1) % size + round, "the right block of a ring that was freed");
  }
}

// One rank cannot start the thread that would serve: no rank serves, and nobody waits for it.
void without_thread() {
  const int size = size_of(MPI_COMM_WORLD);
  refuse_threads = rank_of(MPI_COMM_WORLD) == size - 1;
  MPI_Comm comm = served_duplicate();
  refuse_threads = false;
  const std::vector<double> mine(count, 1.0);
  std::vector<double> sum(count);
  MPI_Request request;
  const int code =
      MPI_Iallreduce(mine.data(), sum.data(), count, MPI_DOUBLE, MPI_SUM, comm, &request);
  expect(code == MPI_SUCCESS, "an allreduce where a rank has no thread");
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  expect_sum(sum, size, "an allreduce where a rank has no thread");
  expect(refused || rank_of(MPI_COMM_WORLD) != size - 1, "no thread was asked for with the team");
  MPI_Comm_free(&comm);
}

std::atomic<int> ends{0};

// The callback is slow: whoever does not wait for it is ahead of it.
int count_end(MPI_Datatype, int, void*, void*) {
  usleep(100'000);
  ++ends;
  return MPI_SUCCESS;
}

// When a request is complete, nobody frees a type any more: the program may end MPI.
void types() {
  MPI_Comm comm = served_duplicate();
  int keyval = MPI_KEYVAL_INVALID;
  PMPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, &count_end, &keyval, nullptr);
  MPI_Datatype pair;
  PMPI_Type_contiguous(2, MPI_DOUBLE, &pair);
  PMPI_Type_commit(&pair);
  PMPI_Type_set_attr(pair, keyval, &keyval);
  std::vector<double> data(2 * count, rank_of(comm) == 0 ? 1.0 : 0.0);
  MPI_Request request;
  const bool am_root = rank_of(comm) == 0;
  if (am_root) usleep(50'000);  // the others have started, and freed the type
  MPI_Ibcast(data.data(), count, pair, 0, comm, &request);
  PMPI_Type_free(&pair);
  const bool kept = ends == 0;
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  expect(ends == 1, "a type that is kept beyond its call");
  expect(kept || am_root, "a type that ended before its call");
  expect_sum(data, 1.0, "a broadcast of a derived type");
  PMPI_Type_free_keyval(&keyval);
  MPI_Comm_free(&comm);
}

}  // namespace

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  end_after(60);
  now("freed");
  if (argc < 2) freed();
  now("freed_ring");
  if (argc < 2) freed_ring();
  now("without_thread");
  if (argc < 2) without_thread();
  now("types");
  types();
  const bool failed = any_failure();
  // The message is under way to the last moment.
  now("finalize");
  MPI_Comm comm = served_duplicate();
  const std::vector<double> mine(count, 1.0);
  std::vector<double> sum(count);
  MPI_Request request;
  MPI_Iallreduce(mine.data(), sum.data(), count, MPI_DOUBLE, MPI_SUM, comm, &request);
  MPI_Comm_free(&comm);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Finalize();
  return failed ? 1 : 0;
}
