// Tests the flags of a team, with ranks as threads.
#include "node/team.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "node/peers.hpp"
#include "ropewalk/memory.hpp"
#include "support/thread_mpi.hpp"

namespace ropewalk::node {
namespace {

std::unique_ptr<Team> make_team() {
  std::string reason;
  auto team = Team::create(mpi::comm_world(), reason);
  EXPECT_NE(team, nullptr) << reason;
  return team;
}

TEST(Team, ArrivalsCarryPayload) {
  test::run_ranks(5, [](int rank) {
    const auto team = make_team();
    for (int call = 1; call <= 200; ++call) {
      Slot& own = team->slots().claim();
      const int value = rank * 1000 + call;
      std::memcpy(own.payload, &value, sizeof value);
      team->slots().arrive();
      for (int peer = 0; peer < team->size(); ++peer) {
        int found = 0;
        std::memcpy(&found, team->slots().arrival(peer).payload, sizeof found);
        ASSERT_EQ(found, peer * 1000 + call);
      }
      team->slots().all_arrived();
    }
  });
}

// A rank that never waits for the others must not overwrite a slot that a slow reader still needs.
TEST(Team, ASlotIsKeptUntilItsReadersAreGone) {
  test::run_ranks(3, [](int rank) {
    const auto team = make_team();
    std::minstd_rand random(rank);
    for (int call = 1; call <= 500; ++call) {
      Slot& own = team->slots().claim();
      std::memcpy(own.payload, &call, sizeof call);
      team->slots().arrive();
      const int root = call / 50 % 3;
      if (rank == root) continue;
      for (unsigned spin = random() % 2000; spin > 0; --spin) os::relax();
      int found = 0;
      std::memcpy(&found, team->slots().arrival(root).payload, sizeof found);
      ASSERT_EQ(found, call);
    }
  });
}

TEST(Team, APhaseShowsWhatWasWrittenBeforeIt) {
  test::run_ranks(4, [](int rank) {
    const auto team = make_team();
    Buffer<int> data(4);
    Slot& own = team->slots().claim();
    const std::uint64_t offset = Arena::process().offset(data.data());
    std::memcpy(own.payload, &offset, sizeof offset);
    team->slots().arrive();
    std::vector<int*> theirs;
    for (int peer = 0; peer < 4; ++peer) {
      std::uint64_t at = 0;
      std::memcpy(&at, team->slots().arrival(peer).payload, sizeof at);
      theirs.push_back(reinterpret_cast<int*>(team->base(peer) + at));
    }
    team->slots().all_arrived();
    for (int round = 0; round < 100; ++round) {
      for (int* target : theirs) target[rank] = round * 10 + rank;
      team->phases().barrier();
      for (int peer = 0; peer < 4; ++peer) ASSERT_EQ(data[peer], round * 10 + peer);
      team->phases().barrier();
    }
  });
}

TEST(Team, RanksOnSeveralNodesGetNoTeamAndNoError) {
  std::vector<RankFacts> facts(2);
  std::strcpy(facts[0].node, "one");
  std::strcpy(facts[1].node, "other");
  EXPECT_FALSE(same_node(facts));
  std::strcpy(facts[1].node, "one");
  EXPECT_TRUE(same_node(facts));
}

}  // namespace
}  // namespace ropewalk::node
