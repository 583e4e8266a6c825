// Tests random collectives on ranks as threads.
#include <gtest/gtest.h>

#include <stdlib.h>

#include <algorithm>
#include <memory>
#include <set>

#include "collectives/cases.hpp"
#include "ropewalk/memory.hpp"
#include "support/effort.hpp"
#include "support/thread_mpi.hpp"

namespace ropewalk::test {
namespace {

class RandomCollectives : public testing::TestWithParam<int> {};

TEST_P(RandomCollectives, GiveWhatLoopsGive) {
  const int ranks = GetParam();
  run_ranks(ranks, [&](int rank) {
    Collectives communicator(Communicator::world());
    ASSERT_TRUE(communicator.direct()) << communicator.reason();
    std::mt19937_64 random(1000 + ranks);
    for (int trial = 0; trial < test::cases(300); ++trial) {
      const Case drawn = draw(random);
      const std::string difference = run(communicator, drawn);
      ASSERT_EQ(difference, "") << "rank " << rank << ", trial " << trial << ": "
                                << text(drawn, communicator);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, RandomCollectives, testing::Values(1, 2, 3, 4, 5, 8),
                         testing::PrintToStringParamName());

// Large movements among ranks some of which have private buffers: who copies differs from pair to
// pair, by the kernel or without it.
TEST_P(RandomCollectives, MoveBetweenMappedAndPrivateBuffers) {
  constexpr Collective movements[] = {
      Collective::alltoall, Collective::allgather, Collective::allgatherv, Collective::bcast,
      Collective::gather,   Collective::gatherv,   Collective::scatter,    Collective::scatterv};
  const int ranks = GetParam();
  run_ranks(ranks, [&](int rank) {
    Collectives communicator(Communicator::world());
    std::mt19937_64 random(3000 + ranks);
    for (int trial = 0; trial < test::cases(96); ++trial) {
      const bool large = trial % 2 == 0;
      Case drawn = draw(random, {.bytes = large ? 1U << 20 : 1U << 17, .large_percent = 60});
      drawn.collective = movements[trial / 2 % 8];
      drawn.send_shared = random();
      drawn.receive_shared = random();
      if (trial % 3 == 0) drawn.send_shared = 0;
      const std::string difference = run(communicator, drawn);
      ASSERT_EQ(difference, "") << "rank " << rank << ", trial " << trial << ": "
                                << text(drawn, communicator);
    }
  });
}

// Each rank writes its private blocks into the buffers that it sees; the kernel copies only between
// private ones.
TEST(Collectives, PrivateBlocksAreWrittenIntoMappedBuffers) {
  run_ranks(3, [](int rank) {
    Collectives communicator(Communicator::world());
    constexpr std::size_t bytes = 512 << 10;
    const std::vector<std::byte> send(3 * bytes, std::byte(rank + 1));
    const Buffer<std::byte> mapped(3 * bytes);
    std::vector<std::byte> own(3 * bytes);
    std::vector<std::byte> expected;
    for (int peer = 0; peer < 3; ++peer)
      expected.resize(expected.size() + bytes, std::byte(peer + 1));
    const auto path_into = [&](std::byte* receive) {
      std::fill_n(receive, 3 * bytes, std::byte{0});
      communicator.alltoall(send.data(), receive, bytes);
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), receive)) << "alltoall";
      const Path alltoall = communicator.last_path();
      std::fill_n(receive, 3 * bytes, std::byte{0});
      communicator.allgather(send.data(), receive, bytes);
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), receive)) << "allgather";
      EXPECT_EQ(communicator.last_path(), alltoall);
      return alltoall;
    };
    EXPECT_EQ(path_into(mapped.data()), Path::mapped);
    const Path between_private = path_into(own.data());
    EXPECT_TRUE(between_private == Path::cma || between_private == Path::staged);
    EXPECT_EQ(path_into(rank == 0 ? own.data() : mapped.data()),
              rank == 0 ? between_private : Path::mapped);
  });
}

// Ranks are dealt to domains as if they had caches of their own, so reductions of mapped buffers go
// through two levels. There are domains of one size and of two, and one chunk (1 MiB) or several.
class TwoLevels : public testing::TestWithParam<std::pair<int, const char*>> {
 protected:
  TwoLevels() { setenv("ROPEWALK_DOMAINS", GetParam().second, 1); }
  ~TwoLevels() override { unsetenv("ROPEWALK_DOMAINS"); }
};

TEST_P(TwoLevels, ReduceAsOneDoes) {
  const int ranks = GetParam().first;
  run_ranks(ranks, [&](int) {
    Collectives communicator(Communicator::world());
    std::mt19937_64 random(2000 + ranks);
    for (int trial = 0; trial < test::cases(40); ++trial) {
      const bool large = trial % 10 == 0;
      Case drawn = draw(random, {.bytes = large ? 3200000U : 240000U, .large_percent = 50});
      drawn.collective = trial % 3 == 0 ? Collective::reduce : Collective::allreduce;
      set_type(drawn, trial % 2 == 0 ? ElementType::uint64 : ElementType::uint16);
      drawn.op = trial % 4 == 0 ? Operation::max : Operation::sum;
      drawn.send_shared = ~std::uint64_t{0};
      drawn.receive_shared = ~std::uint64_t{0};
      ASSERT_EQ(run(communicator, drawn), "")
          << "trial " << trial << ": " << text(drawn, communicator);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, TwoLevels,
                         testing::Values(std::pair(4, "2"), std::pair(5, "2"), std::pair(5, "3"),
                                         std::pair(8, "4"), std::pair(7, "2")),
                         [](const auto& one) {
                           return std::to_string(one.param.first) + "_by_" + one.param.second;
                         });

TEST(Collectives, PathsFollowTheBuffers) {
  run_ranks(3, [](int) {
    Collectives communicator(Communicator::world());
    constexpr std::size_t count = 100000;
    Buffer<float> send(count);
    Buffer<float> receive(count);
    std::vector<float> own(count);
    const auto path_of = [&](const float* from, float* to, std::size_t elements) {
      communicator.allreduce(from, to, elements, ElementType::float32, ReductionOp::sum);
      return communicator.last_path();
    };
    EXPECT_EQ(path_of(send.data(), receive.data(), 2), Path::inlined);
    EXPECT_EQ(path_of(send.data(), receive.data(), count), Path::mapped);
    // A private buffer is copied, a large one reached through the kernel, if it lets.
    constexpr std::size_t small = 1000;
    EXPECT_EQ(path_of(own.data(), receive.data(), small), Path::staged);
    const Path large = path_of(own.data(), receive.data(), count);
    EXPECT_TRUE(large == Path::cma || large == Path::staged) << name(large);
    EXPECT_EQ(path_of(send.data(), own.data(), count), large);
  });
}

// Takes all memory of this rank's arena.
class FullArena {
 public:
  FullArena() {
    for (std::size_t bytes = std::size_t{1} << 40; bytes >= 4096; bytes /= 2) {
      try {
        for (;;) held_.push_back(Arena::process().allocate(bytes));
      } catch (const Error&) {  // the next size may fit
      }
    }
  }
  ~FullArena() {
    for (void* memory : held_) Arena::process().deallocate(memory);
  }
  FullArena(const FullArena&) = delete;
  FullArena& operator=(const FullArena&) = delete;

 private:
  std::vector<void*> held_;
};

// A rank without room for what it must show does not leave the others waiting.
TEST(Collectives, AFullArenaIsAnErrorOnEveryRank) {
  setenv("ROPEWALK_ARENA_BYTES", "16M", 1);  // soon full
  run_ranks(3, [](int rank) {
    Collectives communicator(Communicator::world());
    std::vector<int> own(30000, rank);
    std::vector<int> result(6000);
    const auto fails = [&](auto&& call) {
      const auto full = rank == 1 ? std::make_unique<FullArena>() : nullptr;
      try {
        call();
      } catch (const Error&) {
        return true;
      }
      return false;
    };
    for (const std::size_t count : {2000U, 30000U}) {
      EXPECT_TRUE(fails([&] {
        communicator.scan(own.data(), own.data(), count, ElementType::int32, ReductionOp::max);
      })) << count;
      communicator.barrier();
    }
    EXPECT_TRUE(
        fails([&] { communicator.allgather(own.data(), result.data(), 2000 * sizeof(int)); }));
    communicator.barrier();
    // Everything works as before where there is memory.
    communicator.allgather(own.data(), result.data(), 2000 * sizeof(int));
    EXPECT_EQ(result[2000 * 2], 2);
  });
  unsetenv("ROPEWALK_ARENA_BYTES");
}

TEST(Collectives, DifferingCallsAreAnErrorOnEveryRank) {
  run_ranks(4, [](int rank) {
    Collectives communicator(Communicator::world());
    std::vector<int> data(20000, rank);
    std::vector<int> result(20000);
    const auto expect_error = [&](auto&& call) {
      try {
        call();
        ADD_FAILURE() << "no error on rank " << rank;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::argument) << error.what();
      }
    };
    for (const std::size_t count : {2, 15000}) {
      expect_error([&] {
        communicator.allreduce(data.data(), result.data(), count + (rank == 2), ElementType::int32,
                               ReductionOp::sum);
      });
      expect_error([&] {
        communicator.allreduce(data.data(), result.data(), count, ElementType::int32,
                               rank == 1 ? ReductionOp::max : ReductionOp::sum);
      });
      expect_error([&] {
        communicator.allreduce(rank == 3 ? nullptr : data.data(), result.data(), count,
                               ElementType::int32, ReductionOp::sum);
      });
    }
    // The communicator is as good as before.
    communicator.allreduce(data.data(), result.data(), 4, ElementType::int32, ReductionOp::sum);
    EXPECT_EQ(result[3], 6);
  });
}

TEST(Collectives, AnUnknownPairOfTypeAndOperationIsAnError) {
  run_ranks(2, [](int) {
    Collectives communicator(Communicator::world());
    float value = 1;
    float result = 0;
    for (const auto& [type, op] :
         {std::pair{ElementType::float32, ReductionOp::band},
          std::pair{static_cast<ElementType>(element_type_count), ReductionOp::sum},
          std::pair{ElementType::float32, static_cast<ReductionOp>(reduction_op_count)}}) {
      try {
        communicator.allreduce(&value, &result, 1, type, op);
        ADD_FAILURE() << "no error";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::argument);
      }
    }
  });
}

TEST(Collectives, ManyCommunicatorsLeakNothing) {
  run_ranks(3, [](int rank) {
    std::size_t before = 0;
    for (int round = 0; round < 60; ++round) {
      if (round == 10 && rank == 0) before = Arena::process().statistics().committed_bytes;
      Collectives communicator(Communicator::world());
      std::vector<double> data(5000, rank);
      communicator.allreduce(in_place, data.data(), data.size(), ElementType::float64,
                             ReductionOp::sum);
      ASSERT_EQ(data.back(), 3.0);
    }
    if (rank == 0) {
      EXPECT_EQ(Arena::process().statistics().committed_bytes, before);
    }
  });
}

TEST(Collectives, SeveralNonblockingCallsRunInOrder) {
  run_ranks(3, [](int rank) {
    Collectives communicator(Communicator::world());
    std::vector<std::int64_t> values(3000, rank + 1);
    CollectiveRequest first = communicator.start_allreduce(in_place, values.data(), values.size(),
                                                           ElementType::int64, ReductionOp::sum);
    CollectiveRequest second = communicator.start_allreduce(in_place, values.data(), values.size(),
                                                            ElementType::int64, ReductionOp::sum);
    std::int64_t one = 1;
    // A blocking call waits for those that were started before it.
    communicator.allreduce(in_place, &one, 1, ElementType::int64, ReductionOp::sum);
    EXPECT_EQ(one, 3);
    second.wait();
    first.wait();
    EXPECT_EQ(values[1234], 18);
  });
}

}  // namespace
}  // namespace ropewalk::test
