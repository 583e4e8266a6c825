// Blocks lie further off than an int can say, on one rank alone: the others cannot know, and must
// take the same way all the same. This is tried on fresh communicators, whose first calls go to
// MPI, and on those that are served.
#include <dlfcn.h>
#include <sys/mman.h>

#include <vector>

#include "the_mpi.hpp"

namespace {

using namespace test;
using Large = MPI_Count;

int rank = 0;
int size = 0;
constexpr Large beyond = Large{3} << 30;  // of bytes
constexpr Large block = 100;

template <class... Arguments>
void large(const char* name, Arguments... arguments) {
  now(name);
  auto* function = reinterpret_cast<int (*)(Arguments...)>(dlsym(RTLD_DEFAULT, name));
  if (function == nullptr || function(arguments...) != MPI_SUCCESS) {
    std::fprintf(stderr, "rank %d: %s failed\n", rank, name);
    std::_Exit(1);
  }
}

// Room for a block at each end, of which the middle is never touched.
char* room() {
  void* made = mmap(nullptr, static_cast<std::size_t>(beyond + block * size),
                    PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (made == MAP_FAILED) std::_Exit(1);
  return static_cast<char*>(made);
}

struct Places {
  std::vector<Large> counts;
  std::vector<MPI_Aint> at;
  MPI_Aint place(int peer) const { return at[static_cast<std::size_t>(peer)]; }
};
// Those of the last rank are far away on rank 0.
Places places() {
  Places out;
  for (int peer = 0; peer < size; ++peer) {
    out.counts.push_back(block);
    out.at.push_back(rank == 0 && peer == size - 1 ? beyond : peer * block);
  }
  return out;
}

void fill(char* data, const Places& where) {
  for (int peer = 0; peer < size; ++peer) {
    std::memset(data + where.at[static_cast<std::size_t>(peer)], 1 + peer + 10 * rank,
                static_cast<std::size_t>(block));
  }
}

void clear(char* data, const Places& where) {
  for (int peer = 0; peer < size; ++peer) {
    std::memset(data + where.place(peer), 0, static_cast<std::size_t>(block));
  }
}

void expect(const char* what, const char* data, int value) {
  if (data[0] == value && data[block - 1] == value) return;
  std::fprintf(stderr, "rank %d: %s gave %d, expected %d\n", rank, what, data[0], value);
  std::_Exit(1);
}

void check_gatherv(char* send, char* receive, const Places& where, MPI_Comm comm) {
  std::memset(send, 1 + rank, block);
  large("MPI_Gatherv_c", send, block, MPI_CHAR, receive, where.counts.data(), where.at.data(),
        MPI_CHAR, 0, comm);
  for (int peer = 0; rank == 0 && peer < size; ++peer) {
    expect("gatherv", receive + where.place(peer), 1 + peer);
  }
}

void check_scatterv(char* send, char* receive, const Places& where, MPI_Comm comm) {
  large("MPI_Scatterv_c", send, where.counts.data(), where.at.data(), MPI_CHAR, receive, block,
        MPI_CHAR, 0, comm);
  expect("scatterv", receive, 1 + rank);
}

void check_alltoallv(char* send, char* receive, const Places& where, MPI_Comm comm) {
  large("MPI_Alltoallv_c", send, where.counts.data(), where.at.data(), MPI_CHAR, receive,
        where.counts.data(), where.at.data(), MPI_CHAR, comm);
  for (int peer = 0; peer < size; ++peer) {
    expect("alltoallv", receive + where.place(peer), 1 + rank + 10 * peer);
  }
}

void check_allgatherv(char* send, char* receive, const Places& where, MPI_Comm comm) {
  std::memset(send, 1 + rank, block);
  large("MPI_Allgatherv_c", send, block, MPI_CHAR, receive, where.counts.data(), where.at.data(),
        MPI_CHAR, comm);
  for (int peer = 0; peer < size; ++peer) {
    expect("allgatherv", receive + where.place(peer), 1 + peer);
  }
}

// On a duplicate of its own: the first of its calls, or one that is served.
template <class Check>
void check_twice(Check check, char* send, char* receive, const Places& where) {
  for (const bool served : {false, true}) {
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int i = 0; served && i < 4; ++i) MPI_Barrier(comm);
    fill(send, where);
    clear(receive, where);
    check(send, receive, where, comm);
    MPI_Comm_free(&comm);
  }
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  end_after(60);
  char* const send = room();
  char* const receive = room();
  const Places where = places();
  check_twice(check_gatherv, send, receive, where);
  check_twice(check_scatterv, send, receive, where);
  check_twice(check_alltoallv, send, receive, where);
  check_twice(check_allgatherv, send, receive, where);
  MPI_Finalize();
  return 0;
}
