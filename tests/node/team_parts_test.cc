// Tests the parts of a team, each for itself: control blocks in plain memory, no MPI, and all ranks
// in one thread. A rank that must wait looks around, and the watcher then ends its wait.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>
#include <vector>

#include "node/peers.hpp"
#include "node/phases.hpp"
#include "node/rooms.hpp"
#include "node/slots.hpp"
#include "node/staging_area.hpp"
#include "node/waits.hpp"
#include "ropewalk/error.hpp"
#include "ropewalk/memory.hpp"

namespace ropewalk::node {
namespace {

struct MustWait {};

class EndsWaits final : public Watcher {
 public:
  void look() override { throw MustWait(); }
  void lost(int /*rank*/) override {}
};

// This is one rank of a team, without its team.
struct Rank {
  Rank(const ControlBlocks& blocks, std::span<std::byte* const> bases)
      : waits(blocks.of[0]->sleepers, {}, false),
        slots(blocks, waits),
        phases(blocks, waits),
        staging(blocks, bases),
        rooms(blocks, slots, waits) {
    waits.progress_mpi(false);
    waits.watch_with(&watcher);
  }
  ~Rank() {
    for (std::byte* half : rooms.memory()) give_back(half);
    give_back(staging.memory());
  }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  // Comes to the next call.
  void call() {
    slots.claim();
    slots.arrive();
  }

  EndsWaits watcher;
  Waits waits;
  Slots slots;
  Phases phases;
  StagingArea staging;
  Rooms rooms;

 private:
  static void give_back(std::byte* memory) {
    if (memory != nullptr) Arena::process().deallocate(memory);
  }
};

class TeamParts : public testing::Test {
 protected:
  std::vector<Control> memory_ = std::vector<Control>(2);
  std::vector<Control*> controls_{memory_.data(), &memory_[1]};
  void* block_ = Arena::process().allocate(1);
  std::byte* base_ = static_cast<std::byte*>(block_) - Arena::process().offset(block_);
  std::vector<std::byte*> bases_{base_, base_};
  Rank first_{{0, controls_[0], controls_}, bases_};
  Rank second_{{1, controls_[1], controls_}, bases_};

  ~TeamParts() override { Arena::process().deallocate(block_); }
};

TEST_F(TeamParts, ARankHasNotArrivedBeforeItShowsItsSlot) {
  const Slot* own = &first_.slots.claim();
  EXPECT_EQ(&first_.slots.claimed(), own);
  EXPECT_FALSE(first_.slots.has_arrived());
  second_.call();
  EXPECT_THROW(second_.slots.arrival(0), MustWait);
  first_.slots.arrive();
  EXPECT_TRUE(first_.slots.has_arrived());
  EXPECT_EQ(&second_.slots.arrival(0), own);
  EXPECT_EQ(first_.slots.calls(), 1U);
}

TEST_F(TeamParts, SlotsGoRoundWhenTheReadersHaveLeftHalfOfThem) {
  for (std::uint64_t call = 1; call < slot_count; ++call) first_.call();
  for (std::uint64_t call = 1; call <= slot_count / 2; ++call) second_.call();
  EXPECT_NO_THROW(first_.slots.claim());
  EXPECT_EQ(first_.slots.seen(), slot_count / 2);
}

TEST_F(TeamParts, SlotsDoNotGoRoundBefore) {
  for (std::uint64_t call = 1; call < slot_count; ++call) first_.call();
  for (std::uint64_t call = 1; call < slot_count / 2; ++call) second_.call();
  EXPECT_THROW(first_.slots.claim(), MustWait);
}

TEST_F(TeamParts, WhereRanksShareCoresAClaimWaitsForTheWholeRound) {
  first_.waits.share_cores();
  EXPECT_TRUE(first_.waits.crowded());
  for (std::uint64_t call = 1; call < slot_count; ++call) first_.call();
  for (std::uint64_t call = 1; call <= slot_count / 2; ++call) second_.call();
  EXPECT_THROW(first_.slots.claim(), MustWait);
}

TEST_F(TeamParts, APhaseCoversThoseThatWereSkipped) {
  EXPECT_EQ(second_.phases.skip(), 1U);
  EXPECT_THROW(first_.phases.wait_for(1, 1), MustWait);
  EXPECT_EQ(second_.phases.finish(), 2U);
  EXPECT_NO_THROW(first_.phases.wait_for(1, 1));
  EXPECT_NO_THROW(first_.phases.wait_for_all(2));
  EXPECT_THROW(first_.phases.wait_for_all(3), MustWait);
  EXPECT_EQ(second_.phases.finished(), 2U);
}

TEST_F(TeamParts, AFailureIsFoundFromItsPhaseBack) {
  second_.phases.finish();
  EXPECT_EQ(first_.phases.failed_rank(1), -1);
  EXPECT_EQ(second_.phases.fail(), 2U);
  EXPECT_NO_THROW(first_.phases.wait_for(1, 2));
  EXPECT_EQ(first_.phases.failed_rank(1), 1);
  EXPECT_EQ(first_.phases.failed_rank(2), 1);
  EXPECT_EQ(first_.phases.failed_rank(3), -1);
}

TEST_F(TeamParts, AStagingAreaIsFoundByTheOthers) {
  std::byte* area = first_.staging.reserve(1000);
  EXPECT_EQ(second_.staging.of(0), area);
  EXPECT_EQ(first_.staging.reserve(10), area);
  std::byte* larger = first_.staging.reserve(Rooms::least_half);
  EXPECT_EQ(second_.staging.of(0), larger);
  EXPECT_EQ(first_.staging.memory(), larger);
}

// A room is one of two in a half: four fit, and the fifth needs the first two back.
TEST_F(TeamParts, ARoomIsKeptUntilItsReadersHaveLeft) {
  constexpr std::size_t bytes = Rooms::least_half / 2;
  const auto take = [&] {
    first_.slots.claim();
    std::byte* room = first_.rooms.take(bytes);
    first_.slots.arrive();
    return room;
  };
  std::set<std::byte*> kept;
  for (int call = 1; call <= 4; ++call) EXPECT_TRUE(kept.insert(take()).second);
  first_.slots.claim();
  for (int call = 1; call <= 3; ++call) {  // once it is at the third, it has left the first two
    EXPECT_THROW(first_.rooms.take(bytes), MustWait);
    second_.call();
  }
  EXPECT_TRUE(kept.contains(first_.rooms.take(bytes)));
}

TEST_F(TeamParts, PiecesAreThoseOfTheCallUnderWay) {
  first_.call();
  second_.call();
  first_.rooms.show_pieces(2);
  EXPECT_NO_THROW(second_.rooms.wait_for_pieces(0, 2));
  EXPECT_THROW(second_.rooms.wait_for_pieces(0, 3), MustWait);
  second_.call();
  EXPECT_THROW(second_.rooms.wait_for_pieces(0, 1), MustWait);
}

TEST_F(TeamParts, AWaitEndsWhereARankHasDied) {
  const pid_t process = fork();
  if (process == 0) _exit(0);
  siginfo_t info{};
  waitid(P_PID, static_cast<id_t>(process), &info, WEXITED | WNOWAIT);
  std::vector<std::shared_ptr<Peer>> peers{std::make_shared<Peer>(), std::make_shared<Peer>()};
  peers[0]->self = true;
  peers[1]->process = process;
  peers[1]->life = os::ProcessWatch(process);
  const bool watched = static_cast<bool>(peers[1]->life);
  Waits waits(memory_[0].sleepers, peers, false);
  waits.progress_mpi(false);
  if (watched) {
    EXPECT_FALSE(waits.broken());
    EXPECT_THROW(waits.until([] { return false; }), Error);
    EXPECT_TRUE(waits.broken());
  }
  waitpid(process, nullptr, 0);
  if (!watched) GTEST_SKIP() << "no pidfd on this kernel";
}

}  // namespace
}  // namespace ropewalk::node
