// Exchange, interior and boundary in their order, on any number of threads, ranks and lanes.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <vector>

#include "ropewalk/endpoint.hpp"
#include "ropewalk/halo.hpp"
#include "ropewalk/schedule.hpp"
#include "support/thread_mpi.hpp"

namespace ropewalk {
namespace {

using test::run_ranks;

constexpr std::size_t count = 300;  // numbers in a packet: above the eager limit of the test's MPI

struct Layout {
  int ranks;
  int threads;
  int communicating;
  Strategy strategy;
  int lanes = 1;
  int workers = 1;  // that share the copies of the halo
};

void PrintTo(const Layout& layout, std::ostream* out) {
  *out << layout.ranks << " ranks, " << layout.threads << " threads, " << layout.communicating
       << " communicating, " << name(layout.strategy) << ", " << layout.lanes << " lanes, "
       << layout.workers << " workers";
}

// Packets of a ring in the first of two dimensions; the other closes on the rank itself.
struct Packets {
  std::vector<double> send = std::vector<double>(4 * count);
  std::vector<double> receive = std::vector<double>(4 * count);
  FacePackets faces() {
    FacePackets made;
    for (std::size_t i = 0; i < 4; ++i) {
      made.send.push_back(&send[i * count]);
      made.receive.push_back(&receive[i * count]);
      made.bytes.push_back(count * sizeof(double));
    }
    return made;
  }
};

class Overlap : public testing::TestWithParam<Layout> {};

// What faces() wrote in this step arrives before boundary(), and the interior runs once.
TEST_P(Overlap, KeepsTheOrderOfItsPhases) {
  const Layout& layout = GetParam();
  run_ranks(layout.ranks, [&](int rank) {
    const CartesianGrid grid(Communicator::world(), {layout.ranks, 1}, {true, true});
    EndpointOptions options;
    options.lanes = layout.lanes;
    options.threads = layout.strategy == Strategy::threaded;
    EndpointSet endpoints(Communicator::world(), options);
    Packets packets;
    Halo halo(grid, endpoints, packets.faces(),
              {.strategy = layout.strategy, .workers = layout.workers});
    EXPECT_EQ(halo.lanes(), layout.strategy == Strategy::concurrent ? layout.lanes : 1);
    ThreadTeam team({.threads = layout.threads});
    WorkStealing loop(64, layout.threads, layout.communicating, 2);
    std::vector<std::atomic<int>> times(64);
    std::atomic<int> wrong{0};
    for (int step = 1; step <= 5; ++step) {
      parallel_overlap(
          team, loop,
          [&](int worker) {
            if (worker != 0) return;
            for (std::size_t i = 0; i < packets.send.size(); ++i) {
              packets.send[i] = step * 100 + rank * 10 + static_cast<double>(i / count);
            }
          },
          halo,
          [&](std::size_t begin, std::size_t end) {
            for (; begin < end; ++begin) ++times[begin];
          },
          [&](int) {
            for (int direction = 0; direction < 4; ++direction) {
              const int from = grid.neighbour(direction / 2, direction % 2 == 0 ? 1 : -1);
              const double expected = step * 100 + from * 10 + (direction ^ 1);
              const std::size_t first = static_cast<std::size_t>(direction) * count;
              wrong += packets.receive[first] != expected ? 1 : 0;
              wrong += packets.receive[first + count - 1] != expected ? 1 : 0;
            }
            for (const std::atomic<int>& time : times) wrong += time.load() != step ? 1 : 0;
          });
    }
    EXPECT_EQ(wrong.load(), 0);
  });
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, Overlap,
    testing::Values(
        Layout{1, 1, 0, Strategy::concurrent}, Layout{2, 1, 0, Strategy::concurrent},
        Layout{2, 1, 1, Strategy::concurrent, 3}, Layout{2, 2, 1, Strategy::concurrent},
        Layout{2, 2, 1, Strategy::concurrent, 4}, Layout{2, 3, 2, Strategy::concurrent, 4},
        Layout{3, 2, 0, Strategy::sequential}, Layout{2, 2, 2, Strategy::concurrent, 2},
        Layout{2, 2, 1, Strategy::threaded, 2}, Layout{2, 2, 0, Strategy::threaded, 2},
        // All workers share the copies, the communicating ones do, nobody does.
        Layout{2, 3, 0, Strategy::direct, 1, 3}, Layout{2, 3, 3, Strategy::direct, 1, 3},
        Layout{2, 3, 2, Strategy::direct, 1, 2}, Layout{2, 3, 0, Strategy::direct, 1, 2},
        Layout{2, 2, 0, Strategy::concurrent, 1, 2}));

TEST(OverlapWorker, TakesACallForEachCommunicatingWorker) {
  ThreadTeam team({.threads = 3});
  WorkStealing loop(10, 3, 2, 1);
  std::vector<int> called(3, 0);
  parallel_overlap(
      team, loop, [&](int worker) { called[static_cast<std::size_t>(worker)] += 1; },
      [](std::size_t, std::size_t) {}, [](int) {});
  EXPECT_EQ(called, (std::vector<int>{1, 1, 0}));
}

TEST(OverlapWorker, GoesOnAfterAnException) {
  ThreadTeam team({.threads = 2});
  WorkStealing loop(100, 2, 0, 1);
  const auto nothing = [](int) {};
  EXPECT_THROW(parallel_overlap(
                   team, loop, nothing,
                   [](std::size_t begin, std::size_t) {
                     if (begin == 77) throw std::runtime_error("no");
                   },
                   nothing),
               std::runtime_error);
  std::atomic<std::size_t> done{0};
  parallel_overlap(
      team, loop, nothing, [&](std::size_t begin, std::size_t end) { done += end - begin; },
      nothing);
  EXPECT_EQ(done.load(), 100U);
}

// Whichever worker throws, the others are not left waiting for it, and the halo is of use again.
TEST(OverlapWorker, SharedCopiesGoOnAfterAnException) {
  run_ranks(2, [](int rank) {
    const CartesianGrid grid(Communicator::world(), {2, 1}, {true, true});
    EndpointSet endpoints(Communicator::world(), {.lanes = 1, .threads = false, .pin = false});
    Packets packets;
    Halo halo(grid, endpoints, packets.faces(), {.strategy = Strategy::direct, .workers = 3});
    ThreadTeam team({.threads = 3, .pin = false});
    WorkStealing loop(90, 3, 0, 1);
    const auto nothing = [](int) {};
    for (const std::size_t block : {std::size_t{0}, std::size_t{45}, std::size_t{89}}) {
      EXPECT_THROW(parallel_overlap(
                       team, loop, nothing, halo,
                       [block](std::size_t begin, std::size_t) {
                         if (begin == block) throw std::runtime_error("no");
                       },
                       nothing),
                   std::runtime_error);
    }
    packets.send.assign(packets.send.size(), rank + 1.0);
    parallel_overlap(
        team, loop, nothing, halo, [](std::size_t, std::size_t) {}, nothing);
    EXPECT_EQ(packets.receive[0], 2.0 - rank);
  });
}

TEST(OverlapWorker, LoopAndTeamMustFit) {
  ThreadTeam team({.threads = 2});
  WorkStealing loop(10, 3);
  const auto nothing = [](int) {};
  EXPECT_THROW(parallel_overlap(
                   team, loop, nothing, [](std::size_t, std::size_t) {}, nothing),
               Error);
}

TEST(OverlapWorker, HalosOfFieldsHaveOneLane) {
  run_ranks(2, [](int) {
    const CartesianGrid grid(Communicator::world(), {2}, {true});
    EndpointOptions options;
    options.lanes = 2;
    options.threads = false;
    EndpointSet endpoints(Communicator::world(), options);
    std::vector<double> one(6, 1.0);
    std::vector<double> two(6, 2.0);
    Halo halo(grid, endpoints,
              std::vector<Field>{{one.data(), 8, {4}, {1}}, {two.data(), 8, {4}, {1}}},
              {.strategy = Strategy::concurrent});
    EXPECT_EQ(halo.lanes(), 1);
    one[0] = 0;
    halo.exchange_lane(0);
    EXPECT_EQ(one[0], 1.0);
    EXPECT_THROW(halo.exchange_lane(1), Error);
  });
}

}  // namespace
}  // namespace ropewalk
