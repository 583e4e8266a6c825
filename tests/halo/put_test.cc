// Tests halos that own their faces: the same faces arrive with every strategy, in every grid; in
// place, they are never overwritten while they may be read, and their memory is given back when no
// rank writes to it any more.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "halo/random_faces.hpp"
#include "ropewalk/halo.hpp"
#include "ropewalk/memory.hpp"
#include "support/thread_mpi.hpp"

namespace ropewalk::test {
namespace {

using Random = std::mt19937_64;

class OwnFaces : public testing::TestWithParam<int> {};

TEST_P(OwnFaces, BringWhatTheNeighbourWroteWithEveryStrategy) {
  const int ranks = GetParam();
  Random random(static_cast<std::uint64_t>(ranks));
  for (int round = 0; round < 12; ++round) {
    const FacesCase one = random_faces(random, ranks, 3000);
    const auto strategy = static_cast<Strategy>(round % 6);
    run_ranks(ranks, [&](int rank) {
      const CartesianGrid grid(Communicator::world(), one.extents, one.periodic);
      EndpointSet endpoints(
          Communicator::world(),
          {.lanes = 1 + round % 3, .threads = true, .pin = false, .split_bytes = 1024});
      Halo halo(grid, endpoints, one.sizes, {strategy, Corners::no});
      if (strategy != Strategy::automatic) {
        EXPECT_EQ(halo.strategy(), strategy);
      }
      Random own(static_cast<std::uint64_t>(1000 * round + rank));
      for (std::uint64_t exchange = 1; exchange <= 5; ++exchange) {
        exchange_faces_at_random(halo, grid, one.sizes, exchange, own);
      }
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Halo, OwnFaces, testing::Values(1, 2, 3, 4, 6, 8));

// Many exchanges of a few bytes: ranks get as far ahead of each other as they can.
TEST(Put, NobodyOverwritesWhatIsRead) {
  for (const int ranks : {1, 2, 3, 4}) {
    run_ranks(ranks, [&](int rank) {
      const CartesianGrid grid(Communicator::world(), {ranks, 1}, {true, true});
      EndpointSet endpoints(Communicator::world(), {.lanes = 1, .threads = false, .pin = false});
      const HaloBuffers sizes{{64, 64, 200, 200}};
      Halo halo(grid, endpoints, sizes, {Strategy::put, Corners::no});
      Random random(static_cast<std::uint64_t>(rank) + 7);
      for (std::uint64_t round = 1; round <= (ranks < 3 ? 200U : 25U); ++round) {
        exchange_faces_at_random(halo, grid, sizes, round, random);
      }
    });
  }
}

// What a rank writes is what its neighbour reads: one place, seen by both.
TEST(Put, SendBuffersAreTheNeighboursReceiveBuffers) {
  run_ranks(2, [](int rank) {
    const CartesianGrid grid(Communicator::world(), {2}, {true});
    EndpointSet endpoints(Communicator::world(), {.lanes = 1, .threads = false, .pin = false});
    Halo halo(grid, endpoints, HaloBuffers{{128, 128}}, {Strategy::put, Corners::no});
    EXPECT_EQ(halo.send_bytes(), 256U);
    EXPECT_EQ(halo.lanes(), 1);
    std::set<const void*> places;
    for (int round = 0; round < 4; ++round) {
      for (int i = 0; i < 2; ++i) {
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(halo.send_buffer(i)) % 128, 0U);
        std::memset(halo.send_buffer(i), 16 * round + 2 * rank + i, 128);
        places.insert(halo.send_buffer(i));
      }
      halo.exchange();
      for (int i = 0; i < 2; ++i) {
        EXPECT_EQ(*static_cast<const std::uint8_t*>(halo.receive_buffer(i)),
                  16 * round + 2 * (1 - rank) + (1 - i));
      }
    }
    EXPECT_EQ(places.size(), 4U);
    EXPECT_EQ(halo.send_buffer(2), nullptr);
    EXPECT_EQ(halo.receive_buffer(-1), nullptr);
  });
}

TEST(Put, AutomaticTakesOneThatIsPossible) {
  run_ranks(2, [](int rank) {
    const CartesianGrid grid(Communicator::world(), {2, 1}, {true, true});
    EndpointSet endpoints(Communicator::world(), {.lanes = 1, .threads = false, .pin = false});
    const HaloBuffers sizes{{5000, 5000, 64, 64}};
    Halo halo(grid, endpoints, sizes);
    EXPECT_NE(halo.strategy(), Strategy::automatic);
    Random random(static_cast<std::uint64_t>(rank));
    for (std::uint64_t round = 1; round <= 4; ++round) {
      exchange_faces_at_random(halo, grid, sizes, round, random);
    }
  });
}

// A neighbour that has not ended may still write to memory of a halo that has.
TEST(Put, MemoryGoesBackWhenTheNeighbourHasEnded) {
  run_ranks(2, [](int rank) {
    const CartesianGrid grid(Communicator::world(), {2}, {true});
    EndpointSet endpoints(Communicator::world(), {.lanes = 1, .threads = false, .pin = false});
    std::size_t before = 0;  // once there is a team of ranks, which the first halo makes
    for (int round = 0; round < 3; ++round) {
      std::optional<Halo> halo;
      halo.emplace(grid, endpoints, HaloBuffers{{100000, 100000}},
                   HaloOptions{Strategy::put, Corners::no});
      write_faces(*halo, {{100000, 100000}}, rank, 1);
      halo->exchange();
      if (rank == 0) {
        const std::size_t held = Arena::process().statistics().live_bytes;
        halo.reset();
        EXPECT_EQ(Arena::process().statistics().live_bytes, held);
        mpi::barrier(mpi::comm_world());
      } else {
        mpi::barrier(mpi::comm_world());
        write_faces(*halo, {{100000, 100000}}, rank, 2);
        halo.reset();
      }
      mpi::barrier(mpi::comm_world());
      if (round == 0) before = Arena::process().statistics().live_bytes;
      EXPECT_EQ(Arena::process().statistics().live_bytes, before);
      mpi::barrier(mpi::comm_world());
    }
    EXPECT_LT(before, 200000U);
  });
}

// What it had started is all there; what it never started is missed.
TEST(Put, AnExchangeThatWasStartedOutlivesWhoGivesUp) {
  run_ranks(2, [](int rank) {
    const CartesianGrid grid(Communicator::world(), {2}, {true});
    EndpointSet endpoints(Communicator::world(), {.lanes = 1, .threads = false, .pin = false});
    const HaloBuffers sizes{{64, 64}};
    auto halo =
        std::make_unique<Halo>(grid, endpoints, sizes, HaloOptions{Strategy::put, Corners::no});
    write_faces(*halo, sizes, rank, 1);
    if (rank == 0) {
      try {
        const std::unique_ptr<Halo> last = std::move(halo);
        last->start();
        throw 1;
      } catch (int) {
      }
      mpi::barrier(mpi::comm_world());
      return;
    }
    mpi::barrier(mpi::comm_world());
    halo->start();
    halo->wait();
    check_faces(*halo, grid, sizes, 1);
    halo->start();
    try {
      halo->wait();
      FAIL() << "expected an Error";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("rank 0 gave up"), std::string::npos)
          << error.what();
    }
    EXPECT_EQ(halo->send_buffer(0), nullptr) << "rank 0 has not said that it has read it";
    EXPECT_EQ(halo->send_buffer(1), nullptr);
    EXPECT_THROW(halo->start(), Error);
  });
}

// Whether it takes a halo away before its first exchange or during it.
TEST(Put, MemoryGoesBackAfterAnException) {
  run_ranks(2, [](int rank) {
    const CartesianGrid grid(Communicator::world(), {2}, {true});
    std::size_t before = 0;
    for (int round = 0; round < 6; ++round) {
      const bool starts = round % 2 == 1;
      {
        EndpointSet endpoints(Communicator::world(), {.lanes = 1, .threads = false, .pin = false});
        auto halo = std::make_unique<Halo>(grid, endpoints, HaloBuffers{{100000, 100000}},
                                           HaloOptions{Strategy::put, Corners::no});
        if (rank == 0) {
          try {
            const std::unique_ptr<Halo> last = std::move(halo);
            if (starts) last->start();
            throw 1;
          } catch (int) {
          }
        }
        mpi::barrier(mpi::comm_world());
        if (rank == 1) {
          halo->start();
          if (starts)
            halo->wait();
          else
            EXPECT_THROW(halo->wait(), Error);
          halo.reset();
        }
      }
      mpi::barrier(mpi::comm_world());
      if (round == 1) before = Arena::process().statistics().live_bytes;
      mpi::barrier(mpi::comm_world());
    }
    EXPECT_LT(Arena::process().statistics().live_bytes, before + 100000);
  });
}

// Exits with 0 where two ranks whose faces are of `bytes` each take `put` in an arena of 32 MiB,
// which holds the faces four times; with 1 where they take something else, with 2 where there is no
// room for them.
[[noreturn]] void take_put_in_a_small_arena(std::size_t bytes) {
  setenv("ROPEWALK_ARENA_BYTES", "32M", 1);
  int result = 0;
  try {
    run_ranks(2, [&](int) {
      const CartesianGrid grid(Communicator::world(), {2}, {true});
      EndpointSet endpoints(Communicator::world(), {.lanes = 1, .threads = false, .pin = false});
      Halo halo(grid, endpoints, HaloBuffers{{bytes, bytes}});
      halo.exchange();
      if (halo.strategy() != Strategy::put) result = 1;
    });
  } catch (const Error& error) {
    std::fputs(error.what(), stderr);
    result = error.code() == ErrorCode::memory ? 2 : 3;
  }
  std::_Exit(result);
}

TEST(PutDeathTest, AutomaticTakesWhatThereIsRoomFor) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a process whose arena is not made yet
  constexpr std::size_t one = std::size_t{1} << 20;
  EXPECT_EXIT(take_put_in_a_small_arena(5 * one / 2), testing::ExitedWithCode(0), "");
  // Nor is there any to gather the faces from.
  EXPECT_EXIT(take_put_in_a_small_arena(7 * one / 2), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(take_put_in_a_small_arena(6 * one), testing::ExitedWithCode(2), "faces.bytes|full");
}

TEST(Put, AChildOfForkHasNoPartInIt) {
  run_ranks(2, [](int rank) {
    const CartesianGrid grid(Communicator::world(), {2}, {true});
    EndpointSet endpoints(Communicator::world(), {.lanes = 1, .threads = false, .pin = false});
    const HaloBuffers sizes{{64, 64}};
    Halo halo(grid, endpoints, sizes, {Strategy::put, Corners::no});
    write_faces(halo, sizes, rank, 1);
    halo.exchange();
    mpi::barrier(mpi::comm_world());
    if (rank == 0) {
      const pid_t child = fork();
      ASSERT_GE(child, 0);
      if (child == 0) {
        bool refused = false;
        try {
          halo.start();
        } catch (const Error&) {
          refused = true;
        }
        { const Halo gone = std::move(halo); }
        _exit(refused ? 0 : 1);
      }
      int status = 0;
      ASSERT_EQ(waitpid(child, &status, 0), child);
      EXPECT_EQ(status, 0);
    }
    mpi::barrier(mpi::comm_world());
    write_faces(halo, sizes, rank, 2);
    halo.exchange();
    check_faces(halo, grid, sizes, 2);
  });
}

template <class Make>
void expect_refused(ErrorCode code, const char* word, Make&& make) {
  try {
    make();
    FAIL() << "expected an Error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
  }
}

TEST(Put, WhatCannotBeIsRefusedOnEveryRank) {
  run_ranks(2, [](int rank) {
    const CartesianGrid grid(Communicator::world(), {2}, {true});
    EndpointSet endpoints(Communicator::world(), {.lanes = 1, .threads = false, .pin = false});
    constexpr HaloOptions put{Strategy::put, Corners::no};
    expect_refused(ErrorCode::argument, "faces.bytes",
                   [&] { const Halo halo(grid, endpoints, HaloBuffers{{64}}, put); });
    expect_refused(ErrorCode::argument, "faces.bytes[", [&] {
      const auto bytes = static_cast<std::size_t>(64 + rank);
      const Halo halo(grid, endpoints, HaloBuffers{{bytes, bytes}}, put);
    });
    expect_refused(ErrorCode::memory, "faces.bytes[0]", [&] {
      const Halo halo(grid, endpoints, HaloBuffers{{SIZE_MAX, SIZE_MAX}}, put);
    });
    Buffer<double> row(4);
    expect_refused(ErrorCode::argument, "put", [&] {
      const Halo halo(grid, endpoints, std::vector<Field>{{row.data(), 8, {2}, {1}}}, put);
    });
    Halo halo(grid, endpoints, HaloBuffers{{0, 0}}, put);
    halo.exchange();
    EXPECT_EQ(halo.send_buffer(0), nullptr);
  });
}

}  // namespace
}  // namespace ropewalk::test
