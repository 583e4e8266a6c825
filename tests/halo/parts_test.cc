// Tests faces that threads hand over in parts: what arrives is what was written, each part as soon
// as it was handed over, whatever the order.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "halo/parted_faces.hpp"
#include "halo/random_faces.hpp"
#include "ropewalk/halo.hpp"
#include "support/thread_mpi.hpp"

namespace ropewalk::test {
namespace {

using Random = std::mt19937_64;

constexpr HaloOptions in_parts(int parts) { return {Strategy::put, Corners::no, parts}; }

EndpointOptions one_lane() { return {.lanes = 1, .threads = false, .pin = false}; }

class Parts : public testing::TestWithParam<int> {};

TEST_P(Parts, BringWhatThreadsHandOver) {
  const int ranks = GetParam();
  Random random(static_cast<std::uint64_t>(ranks));
  for (int round = 0; round < 6; ++round) {
    const FacesCase one = random_faces(random, ranks, 600);  // often fewer bytes than parts
    const int parts = 1 + static_cast<int>(random() % 9);
    const std::size_t threads = ranks > 4 ? 1 : 1 + random() % 3;
    run_ranks(ranks, [&](int rank) {
      const CartesianGrid grid(Communicator::world(), one.extents, one.periodic);
      EndpointSet endpoints(Communicator::world(), one_lane());
      Halo halo(grid, endpoints, one.sizes,
                {round % 2 == 0 ? Strategy::put : Strategy::automatic, Corners::no, parts});
      EXPECT_EQ(halo.strategy(), Strategy::put);
      EXPECT_EQ(halo.parts(), parts);
      Random own(static_cast<std::uint64_t>(1000 * round + rank));
      for (std::uint64_t exchange = 1; exchange <= 4; ++exchange) {
        exchange_by_threads(halo, grid, one.sizes, exchange, threads, own);
      }
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Halo, Parts, testing::Values(1, 2, 3, 4, 6, 8, 16));

// A part that is there can be passed on before the neighbour has handed over anything else: ranks
// in a row, each of which waits for the one before.
TEST(HaloParts, APartArrivesBeforeItsFace) {
  constexpr int ranks = 3;
  run_ranks(ranks, [](int rank) {
    const CartesianGrid grid(Communicator::world(), {ranks}, {false});
    EndpointSet endpoints(Communicator::world(), one_lane());
    const HaloBuffers sizes{{10, 10}};
    Halo halo(grid, endpoints, sizes, in_parts(3));
    for (std::uint64_t round = 1; round <= 20; ++round) {
      Parted parted(halo, grid, sizes);
      halo.start();
      for (int part = 0; part < 3; ++part) {
        if (rank > 0) parted.take({1, part}, round);
        if (rank < ranks - 1) parted.hand_over({0, part}, round);
      }
      for (int part = 2; part >= 0; --part) {
        if (rank < ranks - 1) parted.take({0, part}, round);
        if (rank > 0) parted.hand_over({1, part}, round);
      }
      halo.wait();
    }
  });
}

TEST(HaloParts, ExchangeHandsOverAll) {
  run_ranks(2, [](int rank) {
    const CartesianGrid grid(Communicator::world(), {2, 1}, {true, true});
    EndpointSet endpoints(Communicator::world(), one_lane());
    const HaloBuffers sizes{{7, 7, 100, 100}};
    Halo halo(grid, endpoints, sizes, in_parts(4));
    for (std::uint64_t round = 1; round <= 5; ++round) {
      write_faces(halo, sizes, rank, round);
      halo.exchange();
      check_faces(halo, grid, sizes, round);
    }
  });
}

template <class Call>
void expect_refused(ErrorCode code, const std::vector<std::string>& words, Call&& call) {
  try {
    call();
    FAIL() << "expected an Error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    for (const std::string& word : words) {
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
    }
  }
}

TEST(HaloParts, WrongCallsAreRefused) {
  run_ranks(2, [](int rank) {
    const CartesianGrid grid(Communicator::world(), {2, 1}, {true, true});
    EndpointSet endpoints(Communicator::world(), one_lane());
    const HaloBuffers sizes{{64, 64, 0, 0}};
    Halo halo(grid, endpoints, sizes, in_parts(2));
    constexpr ErrorCode argument = ErrorCode::argument;
    expect_refused(argument, {"ready()", "start()"}, [&] { halo.ready(0, 0); });
    write_faces(halo, sizes, rank, 1);
    halo.start();
    expect_refused(argument, {"part: 2", "0 to 1"}, [&] { halo.ready(0, 2); });
    expect_refused(argument, {"part: -1"}, [&] { static_cast<void>(halo.arrived(0, -1)); });
    for (const int direction : {-1, 2, 4}) {
      expect_refused(argument, {"direction: " + std::to_string(direction)},
                     [&] { halo.ready(direction, 0); });
    }
    halo.ready(1, 1);
    expect_refused(argument, {"part: 1 of direction 1", "before"}, [&] { halo.ready(1, 1); });
    halo.ready(0, 0);
    halo.ready(0, 1);
    expect_refused(argument, {"wait()", "part 0 of direction 1"}, [&] { halo.wait(); });
    EXPECT_FALSE(halo.test());
    halo.ready(1, 0);
    halo.wait();
    check_faces(halo, grid, sizes, 1);
    halo.start();  // and every part may be handed over again
    for (const int part : {0, 1}) halo.ready(0, part), halo.ready(1, part);
    halo.wait();
    Halo whole(grid, endpoints, sizes, in_parts(0));
    EXPECT_EQ(whole.parts(), 0);
    expect_refused(argument, {"HaloOptions::parts"}, [&] { whole.ready(0, 0); });
  });
}

// No other rank is there to be looked at.
TEST(HaloParts, OneRankMayTestWhileItsPartsAreNotReady) {
  run_ranks(1, [](int rank) {
    const CartesianGrid grid(Communicator::world(), {1}, {true});
    EndpointSet endpoints(Communicator::world(), one_lane());
    const HaloBuffers sizes{{64, 64}};
    Halo halo(grid, endpoints, sizes, in_parts(2));
    write_faces(halo, sizes, rank, 1);
    halo.start();
    for (int i = 0; i < 200; ++i) EXPECT_FALSE(halo.test());
    for (const int part : {0, 1}) halo.ready(0, part), halo.ready(1, part);
    halo.wait();
    check_faces(halo, grid, sizes, 1);
  });
}

TEST(HaloParts, WrongOptionsAreRefusedOnEveryRank) {
  run_ranks(2, [](int rank) {
    const CartesianGrid grid(Communicator::world(), {2}, {true});
    EndpointSet endpoints(Communicator::world(), one_lane());
    const HaloBuffers sizes{{64, 64}};
    const auto make = [&](const HaloOptions& options) {
      const Halo halo(grid, endpoints, sizes, options);
    };
    constexpr ErrorCode argument = ErrorCode::argument;
    expect_refused(argument, {"parts: -1", "0 to 4096"}, [&] { make(in_parts(-1)); });
    expect_refused(argument, {"parts: 4097"}, [&] { make(in_parts(4097)); });
    expect_refused(argument, {"parts"}, [&] { make(in_parts(1 + rank)); });
    expect_refused(argument, {"parts", "direct", "put"}, [&] {
      make({Strategy::direct, Corners::no, 2});
    });
    std::vector<double> row(4);
    expect_refused(argument, {"parts", "HaloBuffers"}, [&] {
      const Halo halo(grid, endpoints, std::vector<Field>{{row.data(), 8, {2}, {1}}},
                      HaloOptions{Strategy::automatic, Corners::no, 2});
    });
  });
}

TEST(HaloParts, AreRefusedOverSeveralNodes) {
  setenv("ROPEWALK_NODES", "1,2", 1);
  run_ranks(3, [](int) {
    const CartesianGrid grid(Communicator::world(), {3}, {true});
    EndpointSet endpoints(Communicator::world(), one_lane());
    expect_refused(ErrorCode::unsupported, {"parts: 2", "several nodes"}, [&] {
      const Halo halo(grid, endpoints, HaloBuffers{{64, 64}}, in_parts(2));
    });
  });
  unsetenv("ROPEWALK_NODES");
}

// Who goes while parts are missing is told of; who goes with all parts there is not missed.
TEST(HaloParts, ARankThatGoesWithPartsMissing) {
  for (const bool complete : {false, true}) {
    run_ranks(2, [&](int rank) {
      const CartesianGrid grid(Communicator::world(), {2}, {true});
      EndpointSet endpoints(Communicator::world(), one_lane());
      const HaloBuffers sizes{{64, 64}};
      auto halo = std::make_unique<Halo>(grid, endpoints, sizes, in_parts(2));
      write_faces(*halo, sizes, rank, 1);
      halo->start();
      const auto hand_over = [&] {
        for (const int part : {0, 1}) halo->ready(0, part), halo->ready(1, part);
      };
      if (rank == 0) {
        halo->ready(0, 0);
        if (complete) halo->ready(0, 1), halo->ready(1, 0), halo->ready(1, 1);
        if (!complete) halo.reset();
        mpi::barrier(mpi::comm_world());
        halo.reset();
        return;
      }
      mpi::barrier(mpi::comm_world());
      hand_over();
      if (complete) {
        halo->wait();
        check_faces(*halo, grid, sizes, 1);
      } else {
        expect_refused(ErrorCode::mpi, {"rank 0 gave up"}, [&] { halo->wait(); });
      }
    });
  }
}

}  // namespace
}  // namespace ropewalk::test
