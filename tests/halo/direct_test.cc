// Tests Strategy::direct beyond what the random tests compare: the data are never read too early or
// too late, errors are those of all ranks, and the end of halos and endpoints may come in any
// order.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "ropewalk/halo.hpp"
#include "ropewalk/memory.hpp"
#include "ropewalk/ropewalk.h"
#include "support/thread_mpi.hpp"

namespace ropewalk::test {
namespace {

constexpr HaloOptions directly{Strategy::direct, Corners::no};

// Each rank of the ring has a row of `cells` doubles and one ghost on either side.
struct Ring {
  CartesianGrid grid;
  std::optional<EndpointSet> endpoints;
  Buffer<double> row;

  explicit Ring(std::size_t cells)
      : grid(Communicator::world(), {Communicator::world().size()}, {true}), row(cells + 2) {
    endpoints.emplace(Communicator::world(),
                      EndpointOptions{.lanes = 1, .threads = false, .pin = false});
  }
  std::vector<Field> fields() const { return {{row.data(), 8, {row.size() - 2}, {1}}}; }
  int size() const { return grid.size(); }

  static double value(int rank, int round) { return rank * 1000.0 + round; }
  void fill(int round) {
    for (double& cell : row) cell = value(grid.rank(), round);
    row[0] = row[row.size() - 1] = -1;
  }
  void check(int round) const {
    ASSERT_EQ(row[0], value((grid.rank() + size() - 1) % size(), round));
    ASSERT_EQ(row[row.size() - 1], value((grid.rank() + 1) % size(), round));
  }
};

// The field is written again as soon as wait() returns: a neighbour that read late would see the
// next round, one that read early the last.
TEST(Direct, NeighboursReadNeitherEarlyNorLate) {
  run_ranks(3, [](int rank) {
    Ring ring(2);
    Halo halo(ring.grid, *ring.endpoints, ring.fields(), directly);
    for (int round = 0; round < 40; ++round) {
      ring.fill(round);
      halo.start();
      if ((round + rank) % 3 == 0) {
        while (!halo.test()) {
        }
      }
      halo.wait();
      ring.check(round);
    }
  });
}

TEST(Direct, TestAloneMakesProgress) {
  run_ranks(4, [](int) {
    Ring ring(3);
    Halo halo(ring.grid, *ring.endpoints, ring.fields(), directly);
    ring.fill(1);
    EXPECT_TRUE(halo.test());
    halo.start();
    while (!halo.test()) {
    }
    ring.check(1);
    EXPECT_TRUE(halo.test());
    halo.wait();
  });
}

TEST(Direct, OutlivesItsEndpointsAndMoves) {
  run_ranks(2, [](int) {
    Ring ring(2);
    std::vector<Halo> halos;
    halos.emplace_back(ring.grid, *ring.endpoints, ring.fields(), directly);
    halos.emplace_back(ring.grid, *ring.endpoints, ring.fields(), directly);
    ring.fill(0);
    halos[1].start();
    halos[0] = std::move(halos[1]);
    halos.pop_back();
    halos[0].wait();
    ring.check(0);
    ring.endpoints.reset();
    ring.fill(1);
    halos[0].exchange();
    ring.check(1);
  });
}

TEST(Direct, ManyHalosLeaveNothingInTheArena) {
  run_ranks(2, [](int rank) {
    Ring ring(2);
    std::size_t before = 0;
    for (int i = 0; i < 20; ++i) {
      Halo halo(ring.grid, *ring.endpoints, ring.fields(), directly);
      halo.exchange();
      mpi::barrier(mpi::comm_world());
      if (rank == 0 && i == 0) before = Arena::process().statistics().live_bytes;
      if (rank == 0) {
        EXPECT_EQ(Arena::process().statistics().live_bytes, before);
      }
      mpi::barrier(mpi::comm_world());
    }
  });
}

// Open boundaries: the ends have one neighbour; a lone rank has none, and needs no arena.
TEST(Direct, WithoutNeighboursNothingIsShared) {
  run_ranks(1, [](int) {
    const CartesianGrid grid(Communicator::world(), {1, 1}, {true, false});
    EndpointSet endpoints(Communicator::world(), {.lanes = 1, .threads = false, .pin = false});
    std::vector<int> array{-1, -1, -1, -1, 7, -1, -1, -1, -1};
    Halo halo(grid, endpoints, std::vector<Field>{{array.data(), 4, {1, 1}, {1, 1}}}, directly);
    halo.exchange();
    EXPECT_EQ(array, (std::vector<int>{-1, 7, -1, -1, 7, -1, -1, 7, -1}));
    EXPECT_EQ(halo.strategy(), Strategy::direct);
    EXPECT_EQ(halo.send_bytes(), 0U);
  });
}

TEST(Direct, PlansOfMessagesRefuseIt) {
  run_ranks(1, [](int) {
    EndpointSet endpoints(Communicator::world(), {.lanes = 1, .threads = false, .pin = false});
    MessagePlan plan = endpoints.plan({});
    try {
      plan.start(Strategy::direct);
      FAIL() << "expected an Error";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::argument);
    }
    plan.start(Strategy::concurrent);
    plan.wait();
  });
}

// A rank that leaves by an exception gives its neighbours an error instead of a hang, and all can
// end.
TEST(Direct, ARankThatGivesUpIsNoticed) {
  std::atomic<bool> gone{false};
  std::atomic<int> errors{0};
  run_ranks(3, [&](int rank) {
    Ring ring(2);
    try {
      Halo halo(ring.grid, *ring.endpoints, ring.fields(), directly);
      halo.exchange();
      if (rank != 1) {
        // Only then is what it withdraws not taken before.
        while (!gone.load()) mpi::iprobe(mpi::any_source(), mpi::any_tag(), mpi::comm_world());
        halo.exchange();
      } else {
        ring.fill(1);
        halo.start();
        throw std::runtime_error("on purpose");
      }
    } catch (const std::runtime_error& error) {
      if (rank == 1) gone = true;
      mpi::barrier(mpi::comm_world());
      // Nobody has written what it took back.
      if (rank == 1) {
        EXPECT_EQ(ring.row[0], -1);
      }
      if (std::string(error.what()).find("gave up") != std::string::npos) ++errors;
    }
    EXPECT_THROW(
        {
          Halo again(ring.grid, *ring.endpoints, ring.fields(), directly);
          again.start();
        },
        Error);
  });
  EXPECT_EQ(errors.load(), 2);
}

TEST(Direct, ByTheCInterface) {
  run_ranks(2, [](int rank) {
    const rw_mpi_comm world = Communicator::world().handle();
    const int extents[] = {2};
    const int periodic[] = {0};
    rw_grid* grid = nullptr;
    rw_endpoints* endpoints = nullptr;
    ASSERT_EQ(rw_grid_create(world, 1, extents, periodic, &grid), RW_SUCCESS);
    ASSERT_EQ(rw_endpoints_create(world, 1, 0, &endpoints), RW_SUCCESS);
    Buffer<int> array(4);
    for (int& cell : array) cell = rank;
    const std::size_t interior[] = {2};
    const std::size_t ghost[] = {1};
    const rw_field field{sizeof(rw_field), array.data(), sizeof(int), interior, ghost};
    rw_halo* halo = nullptr;
    rw_halo_options options = RW_HALO_OPTIONS_INIT;
    options.strategy = RW_STRATEGY_DIRECT;
    ASSERT_EQ(rw_halo_create_fields(grid, endpoints, 1, &field, &options, &halo), RW_SUCCESS)
        << rw_last_error();
    ASSERT_EQ(rw_halo_exchange(halo), RW_SUCCESS) << rw_last_error();
    EXPECT_EQ(array[rank == 0 ? 3 : 0], 1 - rank);
    EXPECT_EQ(array[rank == 0 ? 0 : 3], rank);
    EXPECT_EQ(rw_halo_free(halo), RW_SUCCESS);
    EXPECT_EQ(rw_endpoints_free(endpoints), RW_SUCCESS);
    EXPECT_EQ(rw_grid_free(grid), RW_SUCCESS);
  });
}

}  // namespace
}  // namespace ropewalk::test
