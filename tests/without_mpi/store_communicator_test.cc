// These tests run collectives of ranks that have a key-value store instead of an MPI.
#include "ropewalk/store_communicator.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "mpi/datatypes.hpp"
#include "mpi/library.hpp"
#include "ropewalk/channel.hpp"
#include "ropewalk/collectives.hpp"
#include "without_mpi/group_test.hpp"

namespace ropewalk::test {
namespace {

using StoreCommunicatorTest = GroupTest;

TEST_F(StoreCommunicatorTest, CollectivesAddUpAsALoopDoes) {
  for (const int ranks : {1, 2, 3, 5}) {
    std::mt19937 random(static_cast<unsigned>(ranks));
    std::vector<std::vector<double>> inputs(static_cast<std::size_t>(ranks));
    std::vector<double> wanted(5000);
    for (auto& input : inputs) {
      for (double& sum : wanted) {
        input.push_back(static_cast<double>(random() % 1000));
        sum += input.back();
      }
    }
    run(ranks, [&](Communicator on, int rank) {
      Collectives collectives(on);
      EXPECT_TRUE(collectives.direct()) << collectives.reason();
      std::vector<double> out(wanted.size());
      collectives.allreduce(inputs[static_cast<std::size_t>(rank)].data(), out.data(), out.size(),
                            ElementType::float64, ReductionOp::sum);
      EXPECT_EQ(out, wanted);
    });
  }
}

TEST_F(StoreCommunicatorTest, SplitsAsMpiDoes) {
  run(5, [](Communicator on, int rank) {
    const SplitCommunicator part(on, rank == 4 ? std::nullopt : std::optional(rank % 2), -rank);
    ASSERT_EQ(part.member(), rank != 4);
    if (!part.member()) return;
    EXPECT_EQ(part.communicator().size(), 2);
    EXPECT_EQ(part.communicator().rank(), rank < 2 ? 1 : 0);  // the higher rank has the lower key
    Collectives collectives(part.communicator());
    std::int64_t sum = rank;
    collectives.allreduce(in_place, &sum, 1, ElementType::int64, ReductionOp::sum);
    EXPECT_EQ(sum, rank % 2 == 0 ? 2 : 4);
  });
}

TEST_F(StoreCommunicatorTest, AChannelSendsMessages) {
  run(2, [](Communicator on, int rank) {
    Channel channel(on);
    std::vector<int> data(100'000, rank + 1);
    std::vector<int> out(data.size());
    channel.send_receive(data.data(), data.size() * sizeof(int), 1 - rank, 0, out.data(),
                         out.size() * sizeof(int), 1 - rank, 0);
    EXPECT_EQ(out, std::vector<int>(data.size(), 2 - rank));
  });
}

TEST_F(StoreCommunicatorTest, FewKeysStayInTheStore) {
  run(3, [](Communicator on, int) {
    for (int i = 0; i < 10; ++i) Collectives collectives(on);
  });
  // For each rank, the last key of the communicator and that of a copy of it stay.
  EXPECT_LE(shelf_->size(), 6U);
}

TEST_F(StoreCommunicatorTest, ARankThatDoesNotComeIsNamed) {
  shelf_->patience = std::chrono::milliseconds(50);
  try {
    const StoreCommunicator alone(shelf_, 0, 2);
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("rank 1 has not come"), std::string::npos)
        << error.what();
  }
}

TEST_F(StoreCommunicatorTest, WhatTakesAnMpiSaysSo) {
  run(1, [](Communicator on, int) {
    try {
      int byte = 0;
      mpi::send(&byte, 1, 0, 0, {on.handle()});
      FAIL() << "expected an error";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("share a node"), std::string::npos) << error.what();
    }
    EXPECT_THROW(static_cast<void>(mpi::type_size(mpi::byte_type())), Error);
  });
}

TEST_F(StoreCommunicatorTest, TheWorldIsTheFirstGroup) {
  run(3, [&](Communicator on, int rank) {
    EXPECT_EQ(Communicator::world().rank(), rank);
    const SplitCommunicator part(on, 0, -rank);
    EXPECT_EQ(part.communicator().rank(), 2 - rank);
    EXPECT_EQ(Communicator::world().rank(), rank);
  });
  EXPECT_THROW(static_cast<void>(Communicator::world().rank()), Error);
}

TEST_F(StoreCommunicatorTest, AProcessWithAnMpiKeepsIt) {
  run(1, [](Communicator, int) {});
  const mpi::Library other(mpi::library().abi, "another");
  const mpi::Library* ours = mpi::exchange_library(&other);
  EXPECT_THROW(StoreCommunicator(shelf_, 0, 1), Error);
  EXPECT_EQ(mpi::exchange_library(ours), &other);
}

TEST_F(StoreCommunicatorTest, ALateRankIsNamedAfterTheTimeOut) {
  run(2, [](Communicator on, int rank) {
    Collectives collectives(on, {.timeout_s = 1});
    if (rank == 1) return;
    try {
      collectives.barrier();
      FAIL() << "expected an error";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::peer_dead);
      EXPECT_NE(std::string(error.what()).find("rank 1 has not come"), std::string::npos)
          << error.what();
    }
  });
}

}  // namespace
}  // namespace ropewalk::test
