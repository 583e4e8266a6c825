// If one rank cannot get memory, a mapping, a file or a thread, all ranks get an error. This is
// tried for halos, and for everything below them that is made collectively.
#include <atomic>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "ropewalk/halo.hpp"
#include "ropewalk/memory.hpp"
#include "ropewalk/schedule.hpp"
#include "support/injected_failures.hpp"

namespace ropewalk::test {
namespace {

struct Nothing {};
Nothing nothing(int) { return {}; }

Communicator world() { return Communicator::world(); }

// Both ranks fail in turn: which of them speaks first matters to the other.
class Failures : public testing::TestWithParam<int> {
 protected:
  template <class Prepare, class Make, class Use>
  void expect(Prepare prepare, Make make, Use use) {
    expect_joint_errors(2, GetParam(), prepare, make, use);
  }
};
INSTANTIATE_TEST_SUITE_P(OnRank, Failures, testing::Values(0, 1),
                         testing::PrintToStringParamName());

// Copies made before, so that only the grid's own memory is missing.
struct GridArguments {
  std::vector<std::vector<int>> extents = std::vector<std::vector<int>>(200, {2, 1});
  std::vector<std::vector<bool>> periodic = std::vector<std::vector<bool>>(200, {true, true});
};

TEST_P(Failures, OfGrids) {
  expect([](int) { return GridArguments(); },
         [](int, GridArguments& stock) {
           const std::size_t next = stock.extents.size() - 1;
           std::vector<int> extents = std::move(stock.extents[next]);
           std::vector<bool> periodic = std::move(stock.periodic[next]);
           stock.extents.pop_back();
           stock.periodic.pop_back();
           return CartesianGrid(world(), std::move(extents), std::move(periodic));
         },
         [](int rank, CartesianGrid& grid) { EXPECT_EQ(grid.neighbour(0, 1), 1 - rank); });
}

TEST_P(Failures, OfEndpoints) {
  for (const bool threads : {false, true}) {
    expect(
        nothing,
        [&](int, Nothing&) {
          return EndpointSet(world(), {.lanes = 2, .threads = threads, .pin = false});
        },
        [](int rank, EndpointSet& made) {
          int there = -1;
          if (rank == 0) made.send(1, &rank, sizeof rank, 1, 5);
          if (rank == 1) {
            made.receive(1, &there, sizeof there, 0, 5);
            EXPECT_EQ(there, 0);
          }
        });
  }
}

TEST_P(Failures, OfTeamsOfThreads) {
  expect(
      nothing, [](int, Nothing&) { return ThreadTeam(world(), {.threads = 3, .pin = false}); },
      [](int, ThreadTeam& team) {
        std::atomic<int> sum{0};
        team.run([&](int worker) { sum += worker; });
        EXPECT_EQ(sum, 3);
      });
}

// ---- halos

constexpr std::size_t face = 1024;  // bytes

// What a halo over two ranks is made from.
struct Ground {
  CartesianGrid grid{world(), {2, 1}, {true, true}};
  EndpointSet endpoints{world(), {.lanes = 1, .threads = true, .pin = false}};
  Buffer<std::byte> send{4 * face};
  Buffer<std::byte> receive{4 * face};
  Buffer<std::byte> array{36};
  FacePackets packets;
  std::vector<Field> fields{{array.data(), 1, {4, 4}, {1, 1}}};
  std::vector<std::byte> own = std::vector<std::byte>(36);
  std::vector<Field> private_fields{{own.data(), 1, {4, 4}, {1, 1}}};
  HaloBuffers sizes{std::vector<std::size_t>(4, face)};

  Ground() {
    for (std::size_t i = 0; i < 4; ++i) {
      packets.send.push_back(send.data() + i * face);
      packets.receive.push_back(receive.data() + i * face);
      packets.bytes.push_back(face);
    }
  }
};
std::unique_ptr<Ground> ground(int) { return std::make_unique<Ground>(); }

void exchange(int, Halo& halo) {
  for (int i = 0; i < 3; ++i) halo.exchange();
}

using Case = std::tuple<int, Strategy>;  // the rank that fails

std::string case_name(const testing::TestParamInfo<Case>& one) {
  return std::to_string(std::get<int>(one.param)) + "_" + name(std::get<Strategy>(one.param));
}

class HaloFailures : public testing::TestWithParam<Case> {
 protected:
  template <class Make>
  void expect(Make make) {
    const HaloOptions options{std::get<Strategy>(GetParam()), Corners::no};
    expect_joint_errors(
        2, std::get<int>(GetParam()), ground,
        [&](int, std::unique_ptr<Ground>& of) { return make(*of, options); }, exchange);
  }
};
class HaloFailuresOfSizes : public HaloFailures {};

const auto anywhere = testing::Values(0, 1);
INSTANTIATE_TEST_SUITE_P(OnRank, HaloFailures,
                         testing::Combine(anywhere,
                                          testing::Values(Strategy::concurrent, Strategy::direct,
                                                          Strategy::automatic)),
                         case_name);
INSTANTIATE_TEST_SUITE_P(OnRank, HaloFailuresOfSizes,
                         testing::Combine(anywhere,
                                          testing::Values(Strategy::direct, Strategy::put)),
                         case_name);
// It makes four halos and measures them: seconds where every rank fails.
INSTANTIATE_TEST_SUITE_P(Automatic, HaloFailuresOfSizes,
                         testing::Values(Case{1, Strategy::automatic}), case_name);

TEST_P(HaloFailures, OfFaces) {
  expect([](Ground& of, const HaloOptions& options) {
    return Halo(of.grid, of.endpoints, of.packets, options);
  });
}

TEST_P(HaloFailures, OfFields) {
  expect([](Ground& of, const HaloOptions& options) {
    return Halo(of.grid, of.endpoints, of.fields, options);
  });
}

TEST_P(HaloFailures, OfPrivateFields) {
  expect([](Ground& of, const HaloOptions& options) {
    return Halo(of.grid, of.endpoints, of.private_fields, options);
  });
}

TEST_P(HaloFailuresOfSizes, OfFaces) {
  expect([](Ground& of, const HaloOptions& options) {
    return Halo(of.grid, of.endpoints, of.sizes, options);
  });
}

}  // namespace
}  // namespace ropewalk::test
