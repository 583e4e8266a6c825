#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "halo/random_case.hpp"
#include "ropewalk/halo.hpp"
#include "ropewalk/memory.hpp"
#include "support/thread_mpi.hpp"

namespace ropewalk::test {
namespace {

// What `rank` sends in a direction (index of the public interface).
std::uint8_t packet_byte(int rank, std::size_t direction, std::size_t at) {
  return static_cast<std::uint8_t>(static_cast<std::size_t>(rank) * 37 + direction * 11 + at * 5);
}

// Faces of one rank; sizes differ from dimension to dimension, one of them may be left out.
struct Packets {
  // In the arena, as direct exchanges want it.
  std::vector<std::vector<std::uint8_t, Allocator<std::uint8_t>>> send;
  std::vector<std::vector<std::uint8_t, Allocator<std::uint8_t>>> receive;

  Packets(int rank, const std::vector<std::size_t>& bytes) {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      send.emplace_back(bytes[i]);
      receive.emplace_back(bytes[i], std::uint8_t{0xee});
      for (std::size_t at = 0; at < bytes[i]; ++at) send[i][at] = packet_byte(rank, i, at);
    }
  }
  FacePackets faces() {
    FacePackets out;
    for (std::size_t i = 0; i < send.size(); ++i) {
      out.send.push_back(send[i].data());
      out.receive.push_back(receive[i].data());
      out.bytes.push_back(send[i].size());
    }
    return out;
  }
};

void expect_received(const CartesianGrid& grid, const Packets& packets) {
  for (std::size_t i = 0; i < packets.receive.size(); ++i) {
    const int from = grid.neighbour(static_cast<int>(i / 2), i % 2 == 0 ? 1 : -1);
    for (std::size_t at = 0; at < packets.receive[i].size(); ++at) {
      const std::uint8_t expected = from < 0 ? 0xee : packet_byte(from, i ^ 1U, at);
      ASSERT_EQ(packets.receive[i][at], expected)
          << "rank " << grid.rank() << " direction " << i << " byte " << at;
    }
  }
}

class RandomFaces : public testing::TestWithParam<int> {};

TEST_P(RandomFaces, BringWhatTheNeighbourSends) {
  const int ranks = GetParam();
  std::mt19937_64 random(static_cast<std::uint64_t>(ranks));
  for (int round = 0; round < 15; ++round) {
    const int dimensions = 1 + static_cast<int>(random() % 6);
    const auto extents = random_extents(random, ranks, dimensions);
    std::vector<bool> periodic;
    std::vector<std::size_t> bytes;
    for (int d = 0; d < dimensions; ++d) {
      periodic.push_back(random() % 2 == 0);
      bytes.insert(bytes.end(), 2, random() % 4 == 0 ? 0 : 1 + random() % 5000);
    }
    const auto strategy = static_cast<Strategy>(round % 5);
    run_ranks(ranks, [&](int rank) {
      const CartesianGrid grid(Communicator::world(), extents, periodic);
      EndpointSet endpoints(
          Communicator::world(),
          {.lanes = 1 + round % 3, .threads = true, .pin = false, .split_bytes = 2048});
      Packets packets(rank, bytes);
      Halo halo(grid, endpoints, packets.faces(), {strategy, Corners::no});
      halo.exchange();
      expect_received(grid, packets);
      if (strategy != Strategy::automatic) {
        EXPECT_EQ(halo.strategy(), strategy);
      }
      for (auto& face : packets.receive) std::fill(face.begin(), face.end(), std::uint8_t{0xee});
      halo.exchange();
      expect_received(grid, packets);
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Halo, RandomFaces, testing::Values(1, 2, 3, 4, 6, 8));

TEST(Faces, CountBytesToOtherRanksOnly) {
  run_ranks(2, [](int rank) {
    const CartesianGrid grid(Communicator::world(), {1, 2, 1}, {true, true, false});
    EndpointSet endpoints(Communicator::world(), {.lanes = 1, .threads = false, .pin = false});
    Packets packets(rank, {100, 100, 7, 7, 50, 50});
    for (Strategy strategy : {Strategy::concurrent, Strategy::direct, Strategy::automatic}) {
      const Halo halo(grid, endpoints, packets.faces(), {strategy, Corners::no});
      EXPECT_EQ(halo.send_bytes(), 14U);
    }
  });
}

// Bytes may differ from face to face, as long as both sides of each agree.
TEST(Faces, SizesDifferFromFaceToFace) {
  run_ranks(4, [](int rank) {
    const auto across = [](int lower) { return static_cast<std::size_t>(10 + lower * 100); };
    const CartesianGrid grid(Communicator::world(), {4}, {true});
    EndpointSet endpoints(Communicator::world(), {.lanes = 1, .threads = false, .pin = false});
    Packets packets(rank, {across(rank), across((rank + 3) % 4)});
    for (Strategy strategy : {Strategy::automatic, Strategy::direct}) {
      Halo halo(grid, endpoints, packets.faces(), {strategy, Corners::no});
      halo.exchange();
      expect_received(grid, packets);
    }
  });
}

}  // namespace
}  // namespace ropewalk::test
