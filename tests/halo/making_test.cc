// The cost of making a halo: the number of collective calls of MPI.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <string_view>
#include <vector>

#include "ropewalk/halo.hpp"
#include "ropewalk/memory.hpp"
#include "support/thread_mpi.hpp"

namespace ropewalk::test {
namespace {

std::atomic<int> calls{0};  // of rank 0

bool is_collective(std::string_view function) {
  constexpr std::array<std::string_view, 7> collectives{
      "MPI_Allreduce", "MPI_Bcast",      "MPI_Allgather",      "MPI_Barrier",
      "MPI_Comm_dup",  "MPI_Comm_split", "MPI_Comm_split_type"};
  for (const std::string_view one : collectives) {
    if (function == one) return true;
  }
  return false;
}

RunOptions counted() {
  RunOptions out;
  out.fail = [](const char* function, int rank) {
    if (rank == 0 && is_collective(function)) ++calls;
    return 0;
  };
  return out;
}

constexpr std::size_t face = 64;  // bytes

// What a halo over two ranks is made from, in each of its forms.
struct Ingredients {
  CartesianGrid grid{Communicator::world(), {2, 1}, {true, true}};
  EndpointSet endpoints{Communicator::world(), {.lanes = 1, .threads = true, .pin = false}};
  Buffer<std::byte> send{4 * face};
  Buffer<std::byte> receive{4 * face};
  Buffer<std::byte> array{36};
  FacePackets packets;
  std::vector<Field> fields{{array.data(), 1, {4, 4}, {1, 1}}};
  HaloBuffers buffers{std::vector<std::size_t>(4, face)};

  Ingredients() {
    for (std::size_t i = 0; i < 4; ++i) {
      packets.send.push_back(send.data() + i * face);
      packets.receive.push_back(receive.data() + i * face);
      packets.bytes.push_back(face);
    }
  }
};

// Collective calls that rank 0 makes for one halo.
template <class What>
int collectives_of(int rank, Ingredients& of, const What& what, Strategy strategy) {
  mpi::barrier(mpi::comm_world());
  if (rank == 0) calls = 0;
  const Halo halo(of.grid, of.endpoints, what, {strategy, Corners::no});
  const int made = calls;
  mpi::barrier(mpi::comm_world());
  return rank == 0 ? made : 0;
}

// Two calls each for what all ranks must have alike and for the table of facts, since a word on
// whether all are well goes before; one on the endpoints, and one at the end. Where ranks share
// memory, one more before the team is asked for.
TEST(Making, GathersTheFactsOnce) {
  run_ranks(
      2,
      [](int rank) {
        Ingredients of;
        // The team of ranks is made once, with the first halo that wants it.
        collectives_of(rank, of, of.packets, Strategy::direct);
        for (const Strategy strategy :
             {Strategy::concurrent, Strategy::sequential, Strategy::threaded}) {
          EXPECT_LE(collectives_of(rank, of, of.packets, strategy), 6) << name(strategy);
          EXPECT_LE(collectives_of(rank, of, of.fields, strategy), 6) << name(strategy);
          EXPECT_LE(collectives_of(rank, of, of.buffers, strategy), 6) << name(strategy);
        }
        EXPECT_LE(collectives_of(rank, of, of.packets, Strategy::direct), 7);
        EXPECT_LE(collectives_of(rank, of, of.fields, Strategy::direct), 7);
        EXPECT_LE(collectives_of(rank, of, of.buffers, Strategy::direct), 7);
        EXPECT_LE(collectives_of(rank, of, of.buffers, Strategy::put), 7);
      },
      counted());
}

// One more call for each exchange that is measured, and two for the times.
TEST(Making, MeasuresWithoutMakingHalosTwice) {
  run_ranks(
      2,
      [](int rank) {
        Ingredients of;
        collectives_of(rank, of, of.packets, Strategy::direct);
        constexpr int candidates = 3;  // concurrent, threaded, direct
        constexpr int exchanges = (1 + 4) * candidates;
        EXPECT_LE(collectives_of(rank, of, of.packets, Strategy::automatic), 7 + exchanges + 2);
        EXPECT_LE(collectives_of(rank, of, of.fields, Strategy::automatic), 7 + exchanges + 2);
        constexpr int steps = 2 * 4 * (candidates + 1);  // put, too
        EXPECT_LE(collectives_of(rank, of, of.buffers, Strategy::automatic), 9 + steps + 2);
      },
      counted());
}

}  // namespace
}  // namespace ropewalk::test
