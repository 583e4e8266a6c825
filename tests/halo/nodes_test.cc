// Halos over several nodes, which ranks as threads pretend: every layout, every form; and that only
// what leaves a node is sent.
#include <gtest/gtest.h>

#include <stdlib.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "halo/random_case.hpp"
#include "halo/random_faces.hpp"
#include "halo/rank_order.hpp"
#include "node/domains.hpp"
#include "node/rank_nodes.hpp"
#include "ropewalk/halo.hpp"
#include "ropewalk/memory.hpp"
#include "support/thread_mpi.hpp"

namespace ropewalk::test {
namespace {

struct NodesCase {
  const char* nodes;    // ROPEWALK_NODES
  std::vector<int> of;  // the node of each rank, which follows

  int ranks() const { return static_cast<int>(of.size()); }
};

class HaloOverNodes : public testing::TestWithParam<NodesCase> {
 protected:
  HaloOverNodes() { setenv("ROPEWALK_NODES", GetParam().nodes, 1); }
  ~HaloOverNodes() override { unsetenv("ROPEWALK_NODES"); }
};

INSTANTIATE_TEST_SUITE_P(Layouts, HaloOverNodes,
                         testing::Values(NodesCase{"1", {0, 1, 2}}, NodesCase{"2,1", {0, 0, 1}},
                                         NodesCase{"2", {0, 0, 1, 1}},
                                         NodesCase{"round:2", {0, 1, 0, 1}},
                                         NodesCase{"3,1,4", {0, 0, 0, 1, 2, 2, 2, 2}},
                                         NodesCase{"round:3", {0, 1, 2, 0, 1, 2, 0, 1}}),
                         [](const testing::TestParamInfo<NodesCase>& layout) {
                           std::string name = layout.param.nodes;
                           for (char& letter : name) {
                             if (letter == ',' || letter == ':') letter = '_';
                           }
                           return name + "_of_" + std::to_string(layout.param.ranks());
                         });

TEST_P(HaloOverNodes, RandomFieldsAreWhatIndicesSay) {
  const int ranks = GetParam().ranks();
  for (std::uint64_t i = 0; i < 12; ++i) {
    HaloCase one = random_case(static_cast<std::uint64_t>(ranks) * 100 + i, ranks);
    one.strategy = i % 3 == 0 ? Strategy::automatic : Strategy::direct;
    run_ranks(ranks, [&](int) { run_case(one, Communicator::world()); });
  }
}

TEST_P(HaloOverNodes, RandomFacesOfTheHaloComeToTheirNeighbours) {
  const int ranks = GetParam().ranks();
  std::mt19937_64 random(static_cast<std::uint64_t>(ranks));
  for (int round = 0; round < 9; ++round) {
    const FacesCase one = random_faces(random, ranks, 3000);
    constexpr Strategy strategies[]{Strategy::put, Strategy::direct, Strategy::automatic};
    run_ranks(ranks, [&](int rank) {
      const CartesianGrid grid(Communicator::world(), one.extents, one.periodic,
                               round % 2 == 0 ? RankOrder::row_major : RankOrder::by_node);
      EndpointSet endpoints(
          Communicator::world(),
          {.lanes = 1 + round % 2, .threads = round % 4 != 0, .pin = false, .split_bytes = 1024});
      Halo halo(grid, endpoints, one.sizes, {strategies[round % 3], Corners::no});
      std::mt19937_64 own(static_cast<std::uint64_t>(1000 * round + rank));
      for (std::uint64_t exchange = 1; exchange <= 6; ++exchange) {
        exchange_faces_at_random(halo, grid, one.sizes, exchange, own);
      }
    });
  }
}

// The calls by which this rank has sent.
thread_local int sends = 0;

RunOptions counting_sends() {
  RunOptions out;
  out.fail = [](const char* function, int) {
    if (std::string_view(function).starts_with("MPI_Isend")) ++sends;
    return 0;
  };
  return out;
}

TEST_P(HaloOverNodes, OnlyFacesThatLeaveTheNodeAreMessages) {
  const NodesCase& layout = GetParam();
  const auto body = [&](int rank) {
    const CartesianGrid ring(Communicator::world(), {layout.ranks(), 1}, {true, true});
    EndpointSet endpoints(Communicator::world(), {.lanes = 1, .threads = false, .pin = false});
    const HaloBuffers faces{{100, 100, 7, 7}};
    int leaving = 0;
    for (const int step : {1, -1}) {
      const auto node = [&](int of) { return layout.of[static_cast<std::size_t>(of)]; };
      if (node(ring.neighbour(0, step)) != node(rank)) ++leaving;
    }
    for (const Strategy strategy : {Strategy::put, Strategy::direct, Strategy::concurrent}) {
      Halo halo(ring, endpoints, faces, {strategy, Corners::no});
      halo.exchange();
      const int before = sends;
      halo.exchange();
      EXPECT_EQ(sends - before, strategy == Strategy::concurrent ? 2 : leaving) << name(strategy);
      EXPECT_EQ(halo.send_bytes(), 200U);
      EXPECT_EQ(halo.wire_bytes(), static_cast<std::size_t>(leaving) * 100);
    }
  };
  run_ranks(layout.ranks(), body, counting_sends());
}

// ---- which rank stands where

std::vector<int> numbered(int ranks) {
  std::vector<int> out(static_cast<std::size_t>(ranks));
  std::iota(out.begin(), out.end(), 0);
  return out;
}

TEST_P(HaloOverNodes, EveryCellHasOneRankInEitherOrder) {
  const int ranks = GetParam().ranks();
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    std::mt19937_64 random(seed);
    const FacesCase one = random_faces(random, ranks, 8);
    std::vector<std::vector<int>> coordinates(static_cast<std::size_t>(ranks));
    run_ranks(ranks, [&](int rank) {
      const CartesianGrid grid(Communicator::world(), one.extents, one.periodic,
                               RankOrder::by_node);
      EXPECT_EQ(grid.rank(), rank);
      EXPECT_EQ(grid.neighbour(std::vector<int>(one.extents.size())), rank);
      coordinates[static_cast<std::size_t>(rank)] = grid.coordinates();
    });
    EXPECT_EQ(std::set(coordinates.begin(), coordinates.end()).size(), coordinates.size());
    EXPECT_LE(halo::crossing_links(
                  one.extents, one.periodic,
                  halo::ranks_by_node(one.extents, one.periodic, {GetParam().of, GetParam().of}),
                  GetParam().of),
              halo::crossing_links(one.extents, one.periodic, numbered(ranks), GetParam().of));
  }
}

std::int64_t links_by_node(const std::vector<int>& extents, const std::vector<int>& nodes) {
  const std::vector<bool> periodic(extents.size(), true);
  return halo::crossing_links(extents, periodic,
                              halo::ranks_by_node(extents, periodic, {nodes, nodes}), nodes);
}

// Of an 8 x 8 torus in 2 x 2 blocks, every second link crosses; in rows of 4, more do.
TEST(RanksByNode, HaveCompactBlocks) {
  std::vector<int> packed;
  std::vector<int> dealt;
  for (int rank = 0; rank < 64; ++rank) {
    packed.push_back(rank / 4);
    dealt.push_back(rank % 16);
  }
  const std::vector<bool> torus{true, true};
  EXPECT_EQ(halo::crossing_links({8, 8}, torus, numbered(64), packed), 64 + 16);
  EXPECT_EQ(links_by_node({8, 8}, packed), 64);
  EXPECT_EQ(halo::crossing_links({8, 8}, torus, numbered(64), dealt), 128);
  EXPECT_EQ(links_by_node({8, 8}, dealt), 64);
  // A line of ranks that were dealt to two nodes of different size.
  EXPECT_EQ(halo::crossing_links({5}, {false}, numbered(5), std::vector{0, 1, 0, 1, 0}), 4);
  EXPECT_EQ(
      halo::crossing_links({5}, {false}, std::vector{0, 2, 4, 1, 3}, std::vector{0, 1, 0, 1, 0}),
      1);
}

// ---- cache domains inside of a node

// Groups of `domains` on each of `nodes`, with so many ranks each.
halo::RankGroups groups_of(int nodes, int domains, int ranks) {
  halo::RankGroups out;
  for (int rank = 0; rank < nodes * domains * ranks; ++rank) {
    out.nodes.push_back(rank / (domains * ranks));
    out.domains.push_back(rank / ranks);
  }
  return out;
}

// Counted by hand on a torus of 8 x 8 on one node: a block of 4 x 2 ranks has 4 + 4 + 2 + 2 links
// to other blocks, and each of them belongs to two.
TEST(RanksByNode, HaveCompactBlocksOfDomains) {
  const std::vector<bool> torus{true, true};
  const halo::RankGroups one_node = groups_of(1, 8, 8);
  const std::vector<int> ranks = halo::ranks_by_node({8, 8}, torus, one_node);
  EXPECT_EQ(halo::crossing_links({8, 8}, torus, ranks, one_node.nodes), 0);
  EXPECT_EQ(halo::crossing_links({8, 8}, torus, ranks, one_node.domains), 8 * 12 / 2);
  EXPECT_EQ(halo::crossing_links({8, 8}, torus, numbered(64), one_node.domains), 64);
  // The nodes come first: blocks of 4 x 4, and in them domains of 2 x 2.
  const halo::RankGroups four = groups_of(4, 4, 4);
  const std::vector<int> best = halo::ranks_by_node({8, 8}, torus, four);
  EXPECT_EQ(halo::crossing_links({8, 8}, torus, best, four.nodes), 32);
  EXPECT_EQ(halo::crossing_links({8, 8}, torus, best, four.domains), 64);
}

// Whatever the groups are, each cell has one rank, no order has fewer links between nodes because
// domains are known, and none more between domains than row-major order where that has as few.
TEST(RanksByNode, PreferNodesToDomains) {
  std::mt19937_64 random(15);
  for (int round = 0; round < 60; ++round) {
    const auto draw = [&](int most) {
      return 1 + static_cast<int>(random() % static_cast<unsigned>(most));
    };
    halo::RankGroups groups = groups_of(draw(4), draw(3), draw(4));
    std::shuffle(groups.nodes.begin(), groups.nodes.end(), random);
    const auto ranks = static_cast<int>(groups.nodes.size());
    for (std::size_t i = 0; i < groups.nodes.size(); ++i) {  // no domain has ranks of two nodes
      groups.domains[i] = groups.nodes[i] * 2 + static_cast<int>(random() % 2);
    }
    const std::vector<int> extents = random_extents(random, ranks, 3);
    const std::vector<bool> periodic{true, false, true};
    const std::vector<int> best = halo::ranks_by_node(extents, periodic, groups);
    EXPECT_EQ(std::set(best.begin(), best.end()).size(), best.size());
    const auto links = [&](const std::vector<int>& order, const std::vector<int>& of) {
      return halo::crossing_links(extents, periodic, order, of);
    };
    const std::vector<int> without =
        halo::ranks_by_node(extents, periodic, {groups.nodes, groups.nodes});
    EXPECT_EQ(links(best, groups.nodes), links(without, groups.nodes));
    if (links(numbered(ranks), groups.nodes) == links(best, groups.nodes)) {
      EXPECT_LE(links(best, groups.domains), links(numbered(ranks), groups.domains));
    }
  }
}

TEST(RanksByNode, FollowTheSettingOfDomains) {
  setenv("ROPEWALK_DOMAINS", "4", 1);
  std::vector<int> columns(8);
  run_ranks(8, [&](int rank) {
    const CartesianGrid grid(Communicator::world(), {2, 4}, {false, false}, RankOrder::by_node);
    columns[static_cast<std::size_t>(rank)] = grid.coordinates()[1];
  });
  unsetenv("ROPEWALK_DOMAINS");
  // Blocks of 2 x 2, between which two links cross; between rows of four there are four.
  EXPECT_EQ(std::set(columns.begin(), columns.begin() + 4), (std::set{0, 1}));
  EXPECT_EQ(std::set(columns.begin() + 4, columns.end()), (std::set{2, 3}));
}

TEST(NumberDomains, AreNumberedNodeByNode) {
  using node::no_domain;
  EXPECT_EQ(
      node::number_domains(std::vector<std::int64_t>{7, 0, 7, 0, 3}, std::vector{0, 0, 1, 0, 1}),
      (std::vector{0, 1, 2, 1, 3}));
  // A rank that may run anywhere, on the second node.
  EXPECT_EQ(node::number_domains(std::vector<std::int64_t>{7, 0, 7, 0, no_domain},
                                 std::vector{0, 0, 1, 0, 1}),
            (std::vector{0, 1, 2, 1, 2}));
}

}  // namespace
}  // namespace ropewalk::test
