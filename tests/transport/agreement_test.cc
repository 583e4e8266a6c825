// Tests the joint judgement of options: one text on every rank, and the lanes that follow.
#include "transport/agreement.hpp"
#include "support/thread_mpi.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "support/thread_mpi.hpp"
#include "transport/node_team.hpp"
#include "tuning/profile.hpp"

namespace ropewalk::transport {
namespace {

// Returns ranks with MPI_THREAD_MULTIPLE that ask for an automatic choice on `cores` shared cores.
std::vector<EndpointFacts> ranks_on(int ranks, int cores) {
  EndpointFacts facts;
  facts.cores = cores;
  facts.threads = 1;
  facts.thread_level = 3;
  return std::vector<EndpointFacts>(static_cast<std::size_t>(ranks), facts);
}

// Returns the text of the error, which must be the same whichever rank judges.
std::string joint_error(const std::vector<EndpointFacts>& facts, ErrorCode code) {
  std::string text;
  for (int rank = 0; rank < static_cast<int>(facts.size()); ++rank) {
    try {
      judge(facts, rank);
      ADD_FAILURE() << "no error on rank " << rank;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code);
      if (rank > 0) {
        EXPECT_EQ(error.what(), text);
      }
      text = error.what();
    }
  }
  return text;
}

TEST(Agreement, NodesAreNumberedByTheirLowestRanks) {
  auto facts = ranks_on(5, 4);
  const std::uint64_t memory[] = {7, 9, 7, 3, 9};
  for (std::size_t rank = 0; rank < facts.size(); ++rank) facts[rank].memory = memory[rank];
  const Agreement agreed = judge(facts, 3);
  EXPECT_EQ(agreed.nodes, (std::vector{0, 1, 0, 2, 1}));
  const NodeNumbers nodes(agreed.nodes, 4);
  EXPECT_EQ(nodes.count, 3);
  EXPECT_TRUE(nodes.shares_own(1));
  EXPECT_FALSE(nodes.shares_own(3));
  EXPECT_EQ(nodes.place(2), 1);
  EXPECT_EQ(nodes.rank_at(0), 1);
  EXPECT_EQ(nodes.rank_at(1), 4);
}

TEST(Agreement, OneRankWithBadLanesIsNamedOnAll) {
  auto facts = ranks_on(3, 4);
  for (const int lanes : {-1, EndpointSet::max_lanes + 1}) {
    facts[1].lanes = lanes;
    EXPECT_EQ(joint_error(facts, ErrorCode::argument)
                  .find("lanes: " + std::to_string(lanes) + " on rank 1"),
              0U);
  }
}

TEST(Agreement, UnequalOptionsNameTheRankThatDiffers) {
  auto facts = ranks_on(3, 4);
  for (EndpointFacts& rank : facts) rank.lanes = 2;
  facts[2].lanes = 3;
  EXPECT_EQ(joint_error(facts, ErrorCode::argument).find("lanes: 3 on rank 2 but 2 on rank 0"), 0U);
  facts[2].lanes = 2;
  facts[1].split_bytes = 77;
  EXPECT_EQ(joint_error(facts, ErrorCode::argument).find("split_bytes: 77 on rank 1"), 0U);
  facts[1].split_bytes = 0;
  facts[1].threads = 0;
  EXPECT_EQ(joint_error(facts, ErrorCode::argument).find("threads: 0 on rank 1 but 1"), 0U);
}

TEST(Agreement, AProfileGivesWhatTheProgramLeavesOpen) {
  test::run_ranks(1, [](int) {
    const tuning::Trial trial("transport.lanes = 3\ntransport.split_bytes = 12K\n");
    EXPECT_EQ(local_facts({}, {}).tuned_lanes, 3);
    EXPECT_EQ(local_facts({}, {}).split_bytes, 12U << 10);
    EXPECT_EQ(local_facts({.split_bytes = 5}, {}).split_bytes, 5U);
  });
  auto facts = ranks_on(1, 4);
  facts[0].split_bytes = 77;
  EXPECT_EQ(judge(facts, 0).split_bytes, 77U);
}

TEST(Agreement, ABadVariableIsQuoted) {
  auto facts = ranks_on(2, 4);
  facts[1].wish = -1;
  std::strcpy(facts[1].wish_text, "many");
  const std::string text = joint_error(facts, ErrorCode::argument);
  EXPECT_EQ(text.find("ROPEWALK_LANES: found \"many\", expected auto, or 1 to 64"), 0U) << text;
  EXPECT_NE(text.find("on rank 1"), std::string::npos) << text;
  facts[0].lanes = facts[1].lanes = 2;  // asked for: the variable does not matter
  EXPECT_EQ(judge(facts, 0).lanes, 2);
}

TEST(Agreement, ThreadLevelTooLowNamesTheRemedy) {
  auto facts = ranks_on(2, 4);
  facts[1].thread_level = 1;
  const std::string text = joint_error(facts, ErrorCode::unsupported);
  EXPECT_NE(text.find("rank 1 has MPI_THREAD_FUNNELED"), std::string::npos) << text;
  EXPECT_NE(text.find("MPI_Init_thread(MPI_THREAD_MULTIPLE)"), std::string::npos) << text;
  facts[0].threads = facts[1].threads = 0;  // one lane without threads needs nothing
  EXPECT_EQ(judge(facts, 0).lanes, 1);
  facts[0].lanes = facts[1].lanes = 2;
  joint_error(facts, ErrorCode::unsupported);
}

TEST(Agreement, LanesComeFromCoresLeftFreeAndTheScarcestRankDecides) {
  EXPECT_EQ(judge(ranks_on(1, 2), 0).lanes, 1);
  EXPECT_EQ(judge(ranks_on(1, 5), 0).lanes, 4);
  EXPECT_EQ(judge(ranks_on(1, 64), 0).lanes, 8);
  EXPECT_EQ(judge(ranks_on(2, 8), 1).lanes, 3);
  EXPECT_EQ(judge(ranks_on(16, 2), 3).lanes, 1);
  auto tuned = ranks_on(2, 8);
  for (EndpointFacts& rank : tuned) rank.tuned_lanes = 2;
  EXPECT_EQ(judge(tuned, 0).lanes, 2);
  for (EndpointFacts& rank : tuned) rank.wish = 5;  // ROPEWALK_LANES comes first
  EXPECT_EQ(judge(tuned, 0).lanes, 5);
  auto facts = ranks_on(3, 64);
  facts[1].node = 1;  // a node of its own, with four cores
  facts[1].cores = 4;
  EXPECT_EQ(judge(facts, 0).lanes, 3);
  facts[2].wish = 2;
  EXPECT_EQ(judge(facts, 0).lanes, 2);
}

TEST(Agreement, PositionCountsRanksOnTheSameCores) {
  auto facts = ranks_on(4, 8);
  facts[1].cores_hash = facts[3].cores_hash = 5;
  EXPECT_EQ(judge(facts, 0).neighbours, 2);
  EXPECT_EQ(judge(facts, 0).position, 0);
  EXPECT_EQ(judge(facts, 2).position, 1);
  EXPECT_EQ(judge(facts, 3).position, 1);
}

TEST(Agreement, RanksOfOtherMachinesAreNotBeside) {
  auto facts = ranks_on(5, 8);
  facts[1].node = facts[3].node = 7;
  facts[4].cores_hash = 5;
  EXPECT_EQ(judge(facts, 0).beside, 3);
  EXPECT_EQ(judge(facts, 3).beside, 2);
}

TEST(Cores, LanesOfNeighboursGetCoresOfTheirOwnFromTheEnd) {
  const std::vector<int> cores{0, 1, 4, 5, 8, 9};
  std::vector<int> taken;
  for (int position = 0; position < 2; ++position) {
    for (int lane = 0; lane < 3; ++lane) {
      const std::vector<int> where = cores_of_lane(cores, lane, 3, position, 2);
      ASSERT_EQ(where.size(), 1U);
      taken.push_back(where[0]);
    }
  }
  EXPECT_EQ(taken, (std::vector<int>{9, 8, 5, 4, 1, 0}));
  EXPECT_EQ(cores_of_lane(cores, 0, 4, 0, 2), cores);  // eight lanes on six cores: not pinned
}

TEST(Cores, NearTheAdapterAreTakenFirst) {
  const std::vector<int> cores{0, 1, 2, 3, 4, 5};
  const std::vector<int> placed = with_last(cores, std::vector<int>{1, 2, 9});
  EXPECT_EQ(placed, (std::vector<int>{0, 3, 4, 5, 1, 2}));
  EXPECT_EQ(cores_of_lane(placed, 0, 2, 0, 1), std::vector<int>{2});
  EXPECT_EQ(cores_of_lane(placed, 1, 2, 0, 1), std::vector<int>{1});
  EXPECT_EQ(with_last(cores, {}), cores);
  EXPECT_EQ(with_last(cores, cores), cores);
}

}  // namespace
}  // namespace ropewalk::transport
