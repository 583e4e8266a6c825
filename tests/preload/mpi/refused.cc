// Buffers lie in memory that the kernel does not copy for other processes: those of one rank or of
// all, sent from, received into, or both. Every call is served as others are, and no rank gets an
// error.
#include <sys/mman.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "refusing.h"
#include "the_mpi.hpp"

namespace {

using namespace test;

int rank = 0;
int size = 0;
constexpr std::size_t room_bytes = std::size_t{8} << 20;

int* map(std::uintptr_t where, int flags) {
  void* made = mmap(reinterpret_cast<void*>(where), room_bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
  if (made == MAP_FAILED) {
    fail("no memory");
    std::_Exit(1);
  }
  return static_cast<int*>(made);
}

// For each side of a call there is ordinary private memory, and memory that is refused.
struct Memory {
  int* ordinary;
  int* refused;
};
Memory sends;
Memory receives;

// Who has refused memory: nobody, rank 0, the last rank, all.
bool is_among(int who) {
  return who == 3 || (who == 1 && rank == 0) || (who == 2 && rank == size - 1);
}

int value(int of, int i) { return of * 1000 + i % 997; }

struct Case {
  std::string name;
  int count;  // of ints
  int* send;
  int* receive;
};

void look(const Case& c, const char* what, std::size_t begin, int count,
          const std::function<int(int)>& expected) {
  for (int i = 0; i < count; ++i) {
    const int found = c.receive[begin + static_cast<std::size_t>(i)];
    if (found == expected(i)) continue;
    return fail(c.name + ", " + what + ": element " + std::to_string(i) + " is " +
                std::to_string(found));
  }
}

// Writes fresh values, as many as `blocks` blocks.
void prepare(const Case& c, int blocks) {
  now(c.name);
  for (int i = 0; i < blocks * c.count; ++i) c.send[i] = value(rank, i);
  for (int i = 0; i < size * c.count; ++i) c.receive[i] = -1;
}

void succeed(const Case& c, const char* what, int code) {
  expect(code == MPI_SUCCESS, c.name + ", " + what + ": an error");
}

int sum(int ranks, int i) {
  int total = 0;
  for (int of = 0; of < ranks; ++of) total += value(of, i);
  return total;
}

void reductions(const Case& c, MPI_Comm comm) {
  prepare(c, 1);
  succeed(c, "allreduce", MPI_Allreduce(c.send, c.receive, c.count, MPI_INT, MPI_SUM, comm));
  look(c, "allreduce", 0, c.count, [](int i) { return sum(size, i); });
  prepare(c, 1);
  std::memcpy(c.receive, c.send, static_cast<std::size_t>(c.count) * sizeof(int));
  succeed(c, "in place", MPI_Allreduce(MPI_IN_PLACE, c.receive, c.count, MPI_INT, MPI_SUM, comm));
  look(c, "in place", 0, c.count, [](int i) { return sum(size, i); });
  prepare(c, 1);
  succeed(c, "reduce", MPI_Reduce(c.send, c.receive, c.count, MPI_INT, MPI_SUM, 0, comm));
  if (rank == 0) look(c, "reduce", 0, c.count, [](int i) { return sum(size, i); });
  prepare(c, 1);
  succeed(c, "scan", MPI_Scan(c.send, c.receive, c.count, MPI_INT, MPI_SUM, comm));
  look(c, "scan", 0, c.count, [](int i) { return sum(rank + 1, i); });
  prepare(c, size);
  succeed(c, "reduce_scatter_block",
          MPI_Reduce_scatter_block(c.send, c.receive, c.count, MPI_INT, MPI_SUM, comm));
  look(c, "reduce_scatter_block", 0, c.count, [&](int i) { return sum(size, rank * c.count + i); });
}

void movements(const Case& c, MPI_Comm comm) {
  prepare(c, 1);
  succeed(c, "broadcast", MPI_Bcast(rank == 0 ? c.send : c.receive, c.count, MPI_INT, 0, comm));
  if (rank != 0) look(c, "broadcast", 0, c.count, [](int i) { return value(0, i); });
  prepare(c, 1);
  succeed(c, "allgather",
          MPI_Allgather(c.send, c.count, MPI_INT, c.receive, c.count, MPI_INT, comm));
  for (int of = 0; of < size; ++of) {
    look(c, "allgather", static_cast<std::size_t>(of * c.count), c.count,
         [of](int i) { return value(of, i); });
  }
  prepare(c, 1);
  succeed(c, "gather", MPI_Gather(c.send, c.count, MPI_INT, c.receive, c.count, MPI_INT, 0, comm));
  for (int of = 0; rank == 0 && of < size; ++of) {
    look(c, "gather", static_cast<std::size_t>(of * c.count), c.count,
         [of](int i) { return value(of, i); });
  }
  prepare(c, size);
  succeed(c, "scatter",
          MPI_Scatter(c.send, c.count, MPI_INT, c.receive, c.count, MPI_INT, 0, comm));
  look(c, "scatter", 0, c.count, [&](int i) { return value(0, rank * c.count + i); });
  prepare(c, size);
  succeed(c, "alltoall", MPI_Alltoall(c.send, c.count, MPI_INT, c.receive, c.count, MPI_INT, comm));
  for (int of = 0; of < size; ++of) {
    look(c, "alltoall", static_cast<std::size_t>(of * c.count), c.count,
         [&](int i) { return value(of, rank * c.count + i); });
  }
}

}  // namespace

int main(int argc, char** argv) {
  end_after(100);
  MPI_Init(&argc, &argv);
  MPI_Comm comm;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &size);
  PMPI_Comm_dup(MPI_COMM_WORLD, &comm);
  PMPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  sends = {map(0, 0), map(REFUSED_BEGIN, MAP_FIXED_NOREPLACE)};
  receives = {map(0, 0), map(REFUSED_BEGIN + 2 * room_bytes, MAP_FIXED_NOREPLACE)};
  MPI_Barrier(comm);
  MPI_Barrier(comm);
  for (int sending = 0; sending < 4; ++sending) {
    for (int receiving = 0; receiving < 4; ++receiving) {
      for (const int count : {1000, 10000, 100000}) {
        const std::string name = "refused to send " + std::to_string(sending) + ", to receive " +
                                 std::to_string(receiving) + ", " + std::to_string(count);
        const Case c{name, count, is_among(sending) ? sends.refused : sends.ordinary,
                     is_among(receiving) ? receives.refused : receives.ordinary};
        reductions(c, comm);
        movements(c, comm);
      }
    }
  }
  const bool failed = any_failure();
  MPI_Comm_free(&comm);
  MPI_Finalize();
  return failed ? 1 : 0;
}
