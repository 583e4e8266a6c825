// An empty block may lie anywhere: no path reads its displacement.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "ropewalk/collectives.hpp"
#include "ropewalk/memory.hpp"
#include "support/thread_mpi.hpp"

namespace ropewalk::test {
namespace {

constexpr std::size_t anywhere = std::size_t{1} << 45;
constexpr std::size_t large = 100'000;  // bytes: more than travels through slots
constexpr int ranks = 3;                // rank 0 has a block of nothing

struct Lists {
  std::vector<std::size_t> counts{0, large, large};
  std::vector<std::size_t> displacements{anywhere, 0, large};
};

Buffer<std::uint8_t> filled(std::size_t bytes, int with) {
  Buffer<std::uint8_t> made(bytes);
  for (std::size_t i = 0; i < bytes; ++i) made.data()[i] = static_cast<std::uint8_t>(with + i % 99);
  return made;
}

void expect_filled(const std::uint8_t* data, std::size_t bytes, int with) {
  for (std::size_t i = 0; i < bytes; ++i) {
    ASSERT_EQ(data[i], static_cast<std::uint8_t>(with + i % 99)) << i;
  }
}

TEST(EmptyBlocks, OfGatherLieAnywhere) {
  run_ranks(ranks, [](int rank) {
    Collectives comm(Communicator::world());
    const Lists lists;
    const auto send = filled(large, rank);
    const auto receive = filled(2 * large, 0);
    comm.gatherv(send.data(), lists.counts[static_cast<std::size_t>(rank)], receive.data(),
                 lists.counts.data(), lists.displacements.data(), 0);
    if (rank != 0) return;
    EXPECT_EQ(comm.last_path(), Path::mapped);
    expect_filled(receive.data(), large, 1);
    expect_filled(receive.data() + large, large, 2);
  });
}

TEST(EmptyBlocks, OfScatterLieAnywhere) {
  run_ranks(ranks, [](int rank) {
    Collectives comm(Communicator::world());
    const Lists lists;
    const auto send = filled(2 * large, 7);
    const auto receive = filled(large, 0);
    const std::size_t bytes = lists.counts[static_cast<std::size_t>(rank)];
    comm.scatterv(send.data(), lists.counts.data(), lists.displacements.data(), receive.data(),
                  bytes, 0);
    if (rank == 0) return;
    EXPECT_EQ(comm.last_path(), Path::mapped);
    const std::size_t at = lists.displacements[static_cast<std::size_t>(rank)];
    for (std::size_t i = 0; i < bytes; i += 997) ASSERT_EQ(receive.data()[i], send.data()[at + i]);
  });
}

// Nobody sends anything to rank 0 or gets anything from it.
void check_alltoallv(int rank, bool in_place_too) {
  Collectives comm(Communicator::world());
  const Lists lists;
  const std::vector<std::size_t> nothing(ranks, 0);
  const std::vector<std::size_t> far(ranks, anywhere);
  const auto& counts = rank == 0 ? nothing : lists.counts;
  const auto& displacements = rank == 0 ? far : lists.displacements;
  const auto send = filled(2 * large, rank);
  const auto receive = filled(2 * large, 10 * rank);
  comm.alltoallv(in_place_too ? in_place : send.data(), counts.data(), displacements.data(),
                 receive.data(), counts.data(), displacements.data());
  if (rank == 0) return;
  if (!in_place_too) {
    EXPECT_EQ(comm.last_path(), Path::mapped);
  }
  const std::size_t begin = (static_cast<std::size_t>(rank) - 1) * large;
  const auto sent = [&](int peer, std::size_t i) {
    const int with = in_place_too ? 10 * peer : peer;
    return static_cast<std::uint8_t>(with + (begin + i) % 99);
  };
  for (std::size_t i = 0; i < large; i += 997) {
    ASSERT_EQ(receive.data()[i], sent(1, i));
    ASSERT_EQ(receive.data()[large + i], sent(2, i));
  }
}

TEST(EmptyBlocks, OfAlltoallLieAnywhere) {
  run_ranks(ranks, [](int rank) { check_alltoallv(rank, false); });
}

TEST(EmptyBlocks, OfAlltoallInPlaceLieAnywhere) {
  run_ranks(ranks, [](int rank) { check_alltoallv(rank, true); });
}

}  // namespace
}  // namespace ropewalk::test
