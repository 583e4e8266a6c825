#include <gtest/gtest.h>

#include <random>
#include <set>
#include <vector>

#include "halo/links.hpp"
#include "halo/random_case.hpp"
#include "ropewalk/halo.hpp"
#include "support/thread_mpi.hpp"

namespace ropewalk {
namespace {

using test::run_ranks;

TEST(Grid, NumbersRanksRowMajor) {
  run_ranks(6, [](int rank) {
    const CartesianGrid grid(Communicator::world(), {2, 3}, {false, true});
    EXPECT_EQ(grid.coordinates(), (std::vector<int>{rank / 3, rank % 3}));
    EXPECT_EQ(grid.neighbour(0, 1), rank < 3 ? rank + 3 : -1);
    EXPECT_EQ(grid.neighbour(0, -1), rank < 3 ? -1 : rank - 3);
    EXPECT_EQ(grid.neighbour(1, 1), rank / 3 * 3 + (rank + 1) % 3);
    EXPECT_EQ(grid.neighbour({1, -1}), rank < 3 ? 3 + (rank + 2) % 3 : -1);
    EXPECT_EQ(grid.neighbour({0, -7}), rank / 3 * 3 + (rank + 2) % 3);  // -7 = 2 modulo 3
    EXPECT_THROW(grid.neighbour(2, 1), Error);
    EXPECT_THROW(grid.neighbour(0, 0), Error);
    EXPECT_THROW(grid.neighbour({0}), Error);
  });
}

TEST(Grid, PeriodicExtentOneIsItsOwnNeighbour) {
  run_ranks(2, [](int rank) {
    const CartesianGrid grid(Communicator::world(), {1, 2, 1}, {true, true, false});
    EXPECT_EQ(grid.neighbour(0, 1), rank);
    EXPECT_EQ(grid.neighbour(0, -1), rank);
    EXPECT_EQ(grid.neighbour(1, 1), 1 - rank);
    EXPECT_EQ(grid.neighbour(1, -1), 1 - rank);
    EXPECT_EQ(grid.neighbour(2, 1), -1);
  });
}

// What one rank sends with a number, its neighbour expects with the same number.
TEST(Links, SendersAndReceiversAgree) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 20; ++round) {
    const int ranks = 1 + static_cast<int>(random() % 8);
    const int dimensions = 1 + static_cast<int>(random() % 4);
    const auto extents = test::random_extents(random, ranks, dimensions);
    std::vector<bool> periodic;
    for (int d = 0; d < dimensions; ++d) periodic.push_back(random() % 2 == 0);
    std::vector<halo::Links> all(static_cast<std::size_t>(ranks));
    run_ranks(ranks, [&](int rank) {
      const CartesianGrid grid(Communicator::world(), extents, periodic);
      all[static_cast<std::size_t>(rank)] = halo::links(
          grid, Corners::yes, std::vector<bool>(static_cast<std::size_t>(dimensions), true));
    });
    std::multiset<std::vector<int>> sent;
    std::multiset<std::vector<int>> received;
    for (int rank = 0; rank < ranks; ++rank) {
      for (const halo::Link& link : all[static_cast<std::size_t>(rank)].present) {
        if (link.to_itself) {
          EXPECT_EQ(link.peer, rank);
          continue;
        }
        // Each entry is sender, receiver, tag, step.
        sent.insert({rank, link.peer, link.from, link.towards});
        received.insert({link.peer, rank, link.towards, link.from});
      }
    }
    EXPECT_EQ(sent, received);
    EXPECT_EQ(std::set(sent.begin(), sent.end()).size(), sent.size()) << "messages confused";
  }
}

}  // namespace
}  // namespace ropewalk
