// This program moves more bytes than an int counts, on two ranks: an allgatherv with a displacement
// beyond 2^31, a reduction of more than 2^31 elements, and a broadcast of them, in the arena.
//
// It needs two buffers of 2 GiB, and is skipped where memory does not allow them.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "mpi/mpi.hpp"
#include "ropewalk/process.hpp"
#include "ropewalk/ropewalk.h"

namespace {

using namespace ropewalk;

constexpr std::size_t large = (std::size_t{1} << 31) + 12345;
// Where bytes are looked at: both ends, and on both sides of 2^31.
constexpr std::array<std::size_t, 6> places = {0,          1,          (1ULL << 31) - 1,
                                               1ULL << 31, large - 77, large - 1};

std::int64_t available_memory() {
  std::ifstream info("/proc/meminfo");
  std::string word;
  std::int64_t kibibytes = 0;
  while (info >> word) {
    if (word == "MemAvailable:") info >> kibibytes;
  }
  std::int64_t limit = INT64_MAX;
  std::int64_t used = 0;
  std::ifstream("/sys/fs/cgroup/memory.max") >> limit;
  std::ifstream("/sys/fs/cgroup/memory.current") >> used;
  if (limit <= 0) limit = INT64_MAX;  // "max"
  return std::min(kibibytes * 1024, limit - used);
}

int failed = 0;
void expect(bool holds, const std::string& what) {
  if (holds) return;
  failed = 1;
  std::fprintf(stderr, "rank %d: %s\n", mpi::rank(mpi::comm_world()), what.c_str());
}
void expect_success(int code, const char* what) {
  expect(code == RW_SUCCESS, std::string(what) + ": " + rw_last_error());
}

std::uint8_t mark(std::size_t place, int rank) {
  return static_cast<std::uint8_t>(place % 251 + static_cast<std::size_t>(rank) + 1);
}

void broadcast(rw_comm* comm, std::uint8_t* bytes, int rank) {
  for (const std::size_t place : places) bytes[place] = rank == 1 ? mark(place, 1) : 0;
  expect_success(rw_bcast(bytes, large, RW_BYTE, 1, comm), "rw_bcast");
  for (const std::size_t place : places) {
    expect(bytes[place] == mark(place, 1), "broadcast: byte " + std::to_string(place));
  }
}

// Rank 0's block is short, rank 1's begins beyond 2^31.
void gather_far(rw_comm* comm, std::uint8_t* bytes, int rank) {
  const std::size_t counts[2] = {1000, 100};
  const std::size_t displacements[2] = {5, large - 100};
  std::array<std::uint8_t, 1000> own{};
  own.fill(static_cast<std::uint8_t>(rank + 7));
  expect_success(
      rw_allgatherv(own.data(), counts[rank], bytes, counts, displacements, RW_UINT8, comm),
      "rw_allgatherv");
  expect(bytes[4] == 0 && bytes[5] == 7 && bytes[1004] == 7 && bytes[1005] == 0, "first block");
  expect(bytes[large - 101] == 0 && bytes[large - 100] == 8 && bytes[large - 1] == 8,
         "block beyond 2^31");
}

void reduce_many(rw_comm* comm, std::uint8_t* bytes, int rank) {
  for (const std::size_t place : places) bytes[place] = mark(place, rank);
  expect_success(rw_allreduce(RW_IN_PLACE, bytes, large, RW_UINT8, RW_BXOR, comm), "rw_allreduce");
  for (const std::size_t place : places) {
    expect(bytes[place] == (mark(place, 0) ^ mark(place, 1)),
           "reduction: element " + std::to_string(place));
  }
}

void run(int rank) {
  rw_comm* comm = nullptr;
  expect_success(rw_comm_create(mpi::comm_world().value, &comm), "rw_comm_create");
  void* memory = nullptr;
  expect_success(rw_alloc(large, 0, &memory), "rw_alloc");
  if (memory != nullptr) {
    auto* bytes = static_cast<std::uint8_t*>(memory);
    gather_far(comm, bytes, rank);
    reduce_many(comm, bytes, rank);
    broadcast(comm, bytes, rank);
  }
  rw_free(memory);
  rw_comm_free(comm);
}

}  // namespace

int main() {
  try {
    const Process process;
    std::array<std::int64_t, 1> available{available_memory()};
    mpi::all_reduce(available, mpi::Combine::min, mpi::comm_world());
    if (available[0] < std::int64_t{7} << 30) {
      std::printf("skipped: %lld MiB of memory are available, 7168 are needed\n",
                  static_cast<long long>(available[0] >> 20));
      return EXIT_SUCCESS;
    }
    run(mpi::rank(mpi::comm_world()));
    return failed;
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return EXIT_FAILURE;
  }
}
