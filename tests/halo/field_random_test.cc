#include <gtest/gtest.h>

#include "halo/random_case.hpp"
#include "support/thread_mpi.hpp"

namespace ropewalk::test {
namespace {

class RandomFields : public testing::TestWithParam<int> {};

TEST_P(RandomFields, EqualTheGlobalArray) {
  const int ranks = GetParam();
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    const HaloCase halo = random_case(seed * 100 + static_cast<std::uint64_t>(ranks), ranks);
    SCOPED_TRACE(halo.text());
    ASSERT_NO_THROW(run_ranks(ranks, [&](int) { run_case(halo, Communicator::world()); }))
        << halo.text();
  }
}

INSTANTIATE_TEST_SUITE_P(Halo, RandomFields, testing::Values(1, 2, 3, 4, 6, 8));

// Random draws meet these cases too seldom.
HaloCase fixed_case(std::vector<int> extents, bool periodic, Corners corners, Strategy strategy) {
  HaloCase out{};
  out.extents = std::move(extents);
  out.periodic.assign(out.extents.size(), periodic);
  out.corners = corners;
  out.strategy = strategy;
  out.arena = strategy == Strategy::direct;
  out.lanes = 2;
  out.threads = true;
  FieldCase field{8, {}, {}};
  for (int extent : out.extents) {
    field.ghost.push_back(1);
    field.cells.emplace_back(static_cast<std::size_t>(extent), 2);
  }
  out.fields.push_back(field);
  return out;
}

TEST(Fields, BothSidesTheSameNeighbour) {
  for (Strategy strategy :
       {Strategy::sequential, Strategy::concurrent, Strategy::threaded, Strategy::direct}) {
    const HaloCase halo = fixed_case({2, 1}, true, Corners::yes, strategy);
    ASSERT_NO_THROW(run_ranks(2, [&](int) { run_case(halo, Communicator::world()); }));
  }
}

TEST(Fields, SixDimensionsWithCorners) {
  for (Strategy strategy : {Strategy::concurrent, Strategy::direct}) {
    const HaloCase halo = fixed_case({2, 1, 1, 2, 1, 1}, true, Corners::yes, strategy);
    ASSERT_NO_THROW(run_ranks(4, [&](int) { run_case(halo, Communicator::world()); }));
  }
}

TEST(Fields, LaneWithoutThreads) {
  HaloCase halo = fixed_case({2, 2}, false, Corners::yes, Strategy::automatic);
  halo.threads = false;
  halo.lanes = 1;
  RunOptions options;
  options.level = mpi::ThreadLevel::single;
  ASSERT_NO_THROW(run_ranks(
      4, [&](int) { run_case(halo, Communicator::world()); }, options));
}

// Two halos on one EndpointSet, started in one order on some ranks and in the other on the rest.
void two_under_way(Strategy strategy) {
  const HaloCase a = fixed_case({2, 2}, true, Corners::yes, strategy);
  HaloCase b = fixed_case({2, 2}, true, Corners::yes, strategy);
  b.fields[0].ghost = {2, 1};
  run_ranks(4, [&](int rank) {
    const CartesianGrid grid(Communicator::world(), a.extents, a.periodic);
    EndpointSet endpoints(Communicator::world(), {.lanes = 1, .threads = false, .pin = false});
    LocalField first(a, 0, grid.coordinates());
    LocalField second(b, 0, grid.coordinates());
    Halo one(grid, endpoints, std::vector<Field>{first.field()}, {a.strategy, a.corners});
    Halo two(grid, endpoints, std::vector<Field>{second.field()}, {b.strategy, b.corners});
    first.fill(0);
    second.fill(0);
    (rank % 2 == 0 ? one : two).start();
    (rank % 2 == 0 ? two : one).start();
    EXPECT_THROW(one.start(), Error);
    two.wait();
    one.wait();
    first.check(0);
    second.check(0);
  });
}

TEST(Fields, HalosUnderWayTogetherAreNotConfused) {
  two_under_way(Strategy::concurrent);
  two_under_way(Strategy::direct);
}

void destroy_under_way(Strategy strategy) {
  const HaloCase halo = fixed_case({3}, true, Corners::no, strategy);
  run_ranks(3, [&](int) {
    const CartesianGrid grid(Communicator::world(), halo.extents, halo.periodic);
    EndpointSet endpoints(Communicator::world(), {.lanes = 1, .threads = false, .pin = false});
    LocalField local(halo, 0, grid.coordinates());
    local.fill(0);
    {
      Halo lost(grid, endpoints, std::vector<Field>{local.field()}, {halo.strategy, halo.corners});
      lost.start();
    }
    local.fill(1);
    Halo kept(grid, endpoints, std::vector<Field>{local.field()}, {halo.strategy, halo.corners});
    kept.exchange();
    local.check(1);
  });
}

// Destroyed under way: waits for its messages, and the next exchange is not disturbed.
TEST(Fields, DestroyedWhileUnderWay) {
  destroy_under_way(Strategy::concurrent);
  destroy_under_way(Strategy::direct);
}

template <class Bytes>
void plan_and_compare() {
  const HaloCase halo = fixed_case({2, 2}, true, Corners::yes, Strategy::automatic);
  run_ranks(4, [&](int) {
    const CartesianGrid grid(Communicator::world(), halo.extents, halo.periodic);
    EndpointSet endpoints(Communicator::world(), {.lanes = 2, .threads = true, .pin = false});
    Bytes bytes(4 * 4 * 8, 0x5a);
    const Field field{bytes.data(), 8, {2, 2}, {1, 1}};
    const Halo planned(grid, endpoints, std::vector<Field>{field}, {halo.strategy, halo.corners});
    EXPECT_EQ(bytes, Bytes(bytes.size(), 0x5a));
    EXPECT_NE(planned.strategy(), Strategy::automatic);
    EXPECT_EQ(planned.send_bytes(), 8U * (4 * 2 + 4));
  });
}

TEST(Fields, PlanningLeavesTheFieldAlone) {
  plan_and_compare<std::vector<std::uint8_t>>();
  plan_and_compare<std::vector<std::uint8_t, Allocator<std::uint8_t>>>();  // direct is measured too
}

}  // namespace
}  // namespace ropewalk::test
