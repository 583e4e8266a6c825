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

// The cases that random draws meet too seldom.
HaloCase fixed_case(std::vector<int> extents, bool periodic, Corners corners, Strategy strategy) {
  HaloCase out{};
  out.extents = std::move(extents);
  out.periodic.assign(out.extents.size(), periodic);
  out.corners = corners;
  out.strategy = strategy;
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
  for (Strategy strategy : {Strategy::sequential, Strategy::concurrent, Strategy::threaded}) {
    const HaloCase halo = fixed_case({2, 1}, true, Corners::yes, strategy);
    ASSERT_NO_THROW(run_ranks(2, [&](int) { run_case(halo, Communicator::world()); }));
  }
}

TEST(Fields, SixDimensionsWithCorners) {
  const HaloCase halo = fixed_case({2, 1, 1, 2, 1, 1}, true, Corners::yes, Strategy::concurrent);
  ASSERT_NO_THROW(run_ranks(4, [&](int) { run_case(halo, Communicator::world()); }));
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
TEST(Fields, HalosUnderWayTogetherAreNotConfused) {
  const HaloCase a = fixed_case({2, 2}, true, Corners::yes, Strategy::concurrent);
  HaloCase b = fixed_case({2, 2}, true, Corners::yes, Strategy::concurrent);
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

// Destroyed under way: waits for its messages, and the next exchange is not disturbed.
TEST(Fields, DestroyedWhileUnderWay) {
  const HaloCase halo = fixed_case({3}, true, Corners::no, Strategy::concurrent);
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

TEST(Fields, PlanningLeavesTheFieldAlone) {
  const HaloCase halo = fixed_case({2, 2}, true, Corners::yes, Strategy::automatic);
  run_ranks(4, [&](int) {
    const CartesianGrid grid(Communicator::world(), halo.extents, halo.periodic);
    EndpointSet endpoints(Communicator::world(), {.lanes = 2, .threads = true, .pin = false});
    std::vector<std::uint8_t> bytes(4 * 4 * 8, 0x5a);
    const Field field{bytes.data(), 8, {2, 2}, {1, 1}};
    const Halo planned(grid, endpoints, std::vector<Field>{field}, {halo.strategy, halo.corners});
    EXPECT_EQ(bytes, std::vector<std::uint8_t>(bytes.size(), 0x5a));
    EXPECT_NE(planned.strategy(), Strategy::automatic);
    EXPECT_EQ(planned.send_bytes(), 8U * (4 * 2 + 4));
  });
}

}  // namespace
}  // namespace ropewalk::test
