// Tests halos that live at the same time on the same endpoints never share tags, however many were
// made.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ropewalk/halo.hpp"
#include "support/thread_mpi.hpp"

namespace ropewalk::test {
namespace {

constexpr int ranks = 2;

// These are two ranks with faces of one byte towards both sides.
class Pair {
 public:
  Pair(const CartesianGrid& grid, EndpointSet& endpoints, int rank, std::uint8_t mark)
      : send_(2, static_cast<std::uint8_t>(mark + rank)),
        halo_(grid, endpoints, packets(), {Strategy::concurrent, Corners::no}),
        expected_(static_cast<std::uint8_t>(mark + 1 - rank)) {}
  Halo& halo() { return halo_; }
  void check() const {
    EXPECT_EQ(receive_[0], expected_);
    EXPECT_EQ(receive_[1], expected_);
  }

 private:
  FacePackets packets() { return {{&send_[0], &send_[1]}, {&receive_[0], &receive_[1]}, {1, 1}}; }
  std::vector<std::uint8_t> send_;
  std::vector<std::uint8_t> receive_ = std::vector<std::uint8_t>(2, 0);
  Halo halo_;
  std::uint8_t expected_;
};

// A field of six dimensions with all corners, over two ranks, has many directions at once.
constexpr int wide_directions = 2 * 243;
struct Wide {
  std::vector<std::uint8_t> array = std::vector<std::uint8_t>(729);
  Halo halo;
  Wide(const CartesianGrid& grid, EndpointSet& endpoints)
      : halo(grid, endpoints,
             std::vector<Field>{
                 {array.data(), 1, std::vector<std::size_t>(6, 1), std::vector<std::size_t>(6, 1)}},
             {Strategy::concurrent, Corners::yes}) {}
};

struct Ground {
  CartesianGrid line{Communicator::world(), {ranks}, {true}};
  CartesianGrid wide{Communicator::world(), {ranks, 1, 1, 1, 1, 1}, std::vector<bool>(6, true)};
  EndpointSet endpoints{Communicator::world(), {.lanes = 1, .threads = false}};
};

// The ranks start two exchanges in different orders, which they may: only waits have one.
void exchange_crosswise(int rank, Pair& one, Pair& other) {
  (rank == 0 ? one : other).halo().start();
  (rank == 0 ? other : one).halo().start();
  one.halo().wait();
  other.halo().wait();
  one.check();
  other.check();
}

// Tags went round after 4096 directions once: the last halo had those of the first.
TEST(Tags, OfLivingHalosDifferHoweverManyWereMade) {
  run_ranks(ranks, [](int rank) {
    Ground ground;
    Pair first(ground.line, ground.endpoints, rank, 10);
    int made = 2;
    for (; made + wide_directions <= 4096; made += wide_directions) {
      const Wide gone(ground.wide, ground.endpoints);
    }
    for (; made < 4096; made += 2) {
      const Pair gone(ground.line, ground.endpoints, rank, 20);
    }
    Pair last(ground.line, ground.endpoints, rank, 30);
    exchange_crosswise(rank, first, last);
  });
}

// These are the fewest tags that an MPI may have.
RunOptions few_tags() {
  RunOptions out;
  out.tag_bound = 32767;
  return out;
}

// Ranks end halos in orders of their own: what is free on one is not on the other.
TEST(Tags, AreFreeOnAllRanksOrOnNone) {
  run_ranks(
      ranks,
      [](int rank) {
        Ground ground;
        std::vector<std::unique_ptr<Wide>> alive;
        for (int i = 0; i < 40; ++i) {
          alive.push_back(std::make_unique<Wide>(ground.wide, ground.endpoints));
        }
        // 18 more go into what is behind them; these have to come into what both have ended.
        for (int i = 0; i < 18; ++i) {
          alive.push_back(std::make_unique<Wide>(ground.wide, ground.endpoints));
        }
        for (const std::size_t gone : rank == 0 ? std::vector<std::size_t>{3, 7, 11, 30}
                                                : std::vector<std::size_t>{5, 11, 30, 31}) {
          alive[gone].reset();
        }
        Wide one(ground.wide, ground.endpoints);
        Wide other(ground.wide, ground.endpoints);
        (rank == 0 ? one : other).halo.start();
        (rank == 0 ? other : one).halo.start();
        EXPECT_THROW(Wide(ground.wide, ground.endpoints), Error);
        one.halo.wait();
        other.halo.wait();
      },
      few_tags());
}

TEST(Tags, WhereNoneAreLeftAllRanksGetAnErrorUntilSomeAre) {
  run_ranks(
      ranks,
      [](int) {
        Ground ground;
        std::vector<std::unique_ptr<Wide>> alive;
        std::string text;
        for (int i = 0; i < 100 && text.empty(); ++i) {
          try {
            alive.push_back(std::make_unique<Wide>(ground.wide, ground.endpoints));
          } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::unsupported);
            text = error.what();
          }
        }
        EXPECT_NE(text.find("486 tags"), std::string::npos) << text;
        EXPECT_GT(alive.size(), 50U);
        alive.erase(alive.begin() + 20);
        alive.push_back(std::make_unique<Wide>(ground.wide, ground.endpoints));
        alive.back()->halo.exchange();
      },
      few_tags());
}

}  // namespace
}  // namespace ropewalk::test
