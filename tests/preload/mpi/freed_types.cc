// One thread frees datatypes while another is in a served collective that uses them. MPI lets that
// call go on as if nothing had happened (MPI 5.0, section 5.1.9: what is under way completes
// normally); so must the drop-in.
#include <sys/syscall.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <thread>
#include <vector>

#include "the_mpi.hpp"

namespace {

using namespace test;

constexpr int rounds = 10;
constexpr int elements = 40;

int rank = 0;
int size = 0;
MPI_Comm calls;   // what the thread calls collectives on
MPI_Comm others;  // what the first thread does meanwhile

MPI_Comm served_duplicate() {
  MPI_Comm made;
  PMPI_Comm_dup(MPI_COMM_WORLD, &made);
  for (int i = 0; i < 3; ++i) MPI_Barrier(made);
  return made;
}

// Makes a type of two ints of each three, or, where all is dense, three of three.
MPI_Datatype make_type(bool dense) {
  MPI_Datatype pieces;
  MPI_Datatype made;
  if (dense) {
    PMPI_Type_contiguous(3, MPI_INT, &made);
  } else {
    PMPI_Type_vector(1, 2, 3, MPI_INT, &pieces);
    PMPI_Type_create_resized(pieces, 0, 3 * sizeof(int), &made);
    PMPI_Type_free(&pieces);
  }
  PMPI_Type_commit(&made);
  return made;
}

int value(int of, int i) { return of * 1000 + i; }

// How often this process's thread has gone to sleep of itself.
long sleeps_of(long thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/status");
  const std::string name = "voluntary_ctxt_switches:";
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(name)) return std::stol(line.substr(name.size()));
  }
  return -1;
}

// Returns when the thread waits in its call for the other ranks: it goes to sleep of itself then,
// or has had far more time than the way to the first wait takes. A wait whose polls of MPI are
// slow stays awake for long.
void wait_until_it_waits(long thread) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
  const long before = sleeps_of(thread);
  while (sleeps_of(thread) < before + 5 && std::chrono::steady_clock::now() < end) usleep(1000);
}

// Runs `call` on a thread of rank 0, and meanwhile() on its first one when that thread waits in the
// call for the other ranks; these call after that.
template <class Call, class Meanwhile>
void call_with_meanwhile(const Call& call, const Meanwhile& meanwhile) {
  int token = 0;
  if (rank != 0) {
    meanwhile();
    MPI_Recv(&token, 1, MPI_INT, 0, 3, others, MPI_STATUS_IGNORE);
    call();
    return;
  }
  std::atomic<long> caller{0};
  std::thread thread([&] {
    caller = syscall(SYS_gettid);
    call();
  });
  while (caller == 0) usleep(100);
  wait_until_it_waits(caller);
  meanwhile();
  for (int peer = 1; peer < size; ++peer) MPI_Send(&token, 1, MPI_INT, peer, 3, others);
  thread.join();
}

// Whatever the drop-in kept of the type that was freed is another's now.
void use_another_type() {
  MPI_Datatype other;
  PMPI_Type_vector(1, 1, 1, MPI_DOUBLE, &other);
  PMPI_Type_commit(&other);
  std::array<double, 4> data{1, 2, 3, 4};
  MPI_Bcast(data.data(), 4, other, 0, others);
  PMPI_Type_free(&other);
}

void movement() {
  for (int round = 0; round < rounds; ++round) {
    MPI_Datatype type = make_type(false);
    std::vector<int> mine(3 * elements);
    std::vector<int> all(static_cast<std::size_t>(size) * mine.size(), -1);
    for (int i = 0; i < 3 * elements; ++i) mine[static_cast<std::size_t>(i)] = value(rank, i);
    int code = -1;
    call_with_meanwhile(
        [&, handle = type] {
          code = MPI_Allgather(mine.data(), elements, handle, all.data(), elements, handle, calls);
        },
        [&] {
          if (rank == 0) PMPI_Type_free(&type);
          use_another_type();
        });
    if (rank != 0) PMPI_Type_free(&type);
    expect(code == MPI_SUCCESS, "an allgather whose type was freed: an error");
    for (int at = 0; at < static_cast<int>(all.size()); ++at) {
      const int i = at % (3 * elements);
      const int wanted = i % 3 == 2 ? -1 : value(at / (3 * elements), i);
      if (all[static_cast<std::size_t>(at)] == wanted) continue;
      return fail("an allgather whose type was freed: element " + std::to_string(at));
    }
  }
}

std::atomic<int> wrong_types{0};
std::atomic<int> combined{0};

// Asks MPI about the type, as a function of the user may.
void add(void* in, void* inout, int* count, MPI_Datatype* type) {
  int bytes = 0;
  MPI_Aint lower = 0;
  MPI_Aint extent = 0;
  if (PMPI_Type_size(*type, &bytes) != MPI_SUCCESS) ++wrong_types;
  PMPI_Type_get_extent(*type, &lower, &extent);
  const int used = bytes / static_cast<int>(sizeof(int));
  const int step = static_cast<int>(extent) / static_cast<int>(sizeof(int));
  if (used < 2 || used > 3 || step != 3) {
    ++wrong_types;
    return;
  }
  ++combined;
  for (int i = 0; i < *count * step; ++i) {
    if (i % step < used) static_cast<int*>(inout)[i] += static_cast<int*>(in)[i];
  }
}

void reduction(bool dense) {
  MPI_Op op;
  PMPI_Op_create(&add, 1, &op);
  for (int round = 0; round < rounds; ++round) {
    MPI_Datatype type = make_type(dense);
    std::vector<int> mine(3 * elements);
    std::vector<int> sum(3 * elements, -1);
    for (int i = 0; i < 3 * elements; ++i) mine[static_cast<std::size_t>(i)] = value(rank, i);
    int code = -1;
    call_with_meanwhile(
        [&, handle = type] {
          code = MPI_Allreduce(mine.data(), sum.data(), elements, handle, op, calls);
        },
        [&] {
          if (rank == 0) PMPI_Type_free(&type);
          use_another_type();
        });
    if (rank != 0) PMPI_Type_free(&type);
    expect(code == MPI_SUCCESS, "an allreduce whose type was freed: an error");
    for (int i = 0; i < 3 * elements; ++i) {
      int wanted = i % 3 == 2 && !dense ? -1 : 0;
      for (int of = 0; wanted >= 0 && of < size; ++of) wanted += value(of, i);
      if (sum[static_cast<std::size_t>(i)] == wanted) continue;
      return fail("an allreduce whose type was freed: element " + std::to_string(i));
    }
  }
  expect(wrong_types == 0, "a function of the user that was given no type");
  expect(combined > 0, "a function of the user that nobody called");
  PMPI_Op_free(&op);
}

}  // namespace

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  end_after(100);
  rank = rank_of(MPI_COMM_WORLD);
  size = size_of(MPI_COMM_WORLD);
  calls = served_duplicate();
  others = served_duplicate();
  PMPI_Comm_set_errhandler(calls, MPI_ERRORS_RETURN);
  now("movement");
  movement();
  now("reduction of elements with gaps");
  reduction(false);
  now("reduction of dense elements");
  reduction(true);
  const bool failed = any_failure();
  MPI_Comm_free(&calls);
  MPI_Comm_free(&others);
  MPI_Finalize();
  return failed ? 1 : 0;
}
