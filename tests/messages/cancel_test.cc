// Receives that are taken back.
#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "mpi/mpi.hpp"
#include "ropewalk/channel.hpp"
#include "support/thread_mpi.hpp"

namespace ropewalk {
namespace {

// What comes after goes to the next receive, whoever it may be from.
TEST(ChannelCancel, AReceiveThatIsTakenBackTakesNoMessage) {
  for (const int from : {1, any_source}) {
    test::run_ranks(2, [from](int rank) {
      Channel channel(Communicator::world());
      int first = 0;
      int second = 0;
      if (rank == 0) {
        MessageRequest taken_back = channel.start_receive(&first, sizeof first, from, 3);
        EXPECT_FALSE(taken_back.test());
        EXPECT_FALSE(taken_back.done());
        EXPECT_TRUE(taken_back.cancel());
        EXPECT_TRUE(taken_back.done());
        EXPECT_FALSE(taken_back.cancel());
        mpi::barrier(mpi::comm_world());
        channel.receive(&second, sizeof second, from, 3);
        EXPECT_EQ(first, 0);
        EXPECT_EQ(second, 7);
      } else {
        second = 7;
        mpi::barrier(mpi::comm_world());
        channel.send(&second, sizeof second, 0, 3);
      }
      mpi::barrier(mpi::comm_world());
    });
  }
}

TEST(ChannelCancel, OfAnyOtherMessageItDoesNothing) {
  test::run_ranks(2, [](int rank) {
    Channel channel(Communicator::world());
    std::vector<std::byte> data(1 << 20);
    MessageRequest message = rank == 0 ? channel.start_send(data.data(), data.size(), 1)
                                       : channel.start_receive(data.data(), data.size(), 0);
    if (rank == 1) message.wait();
    EXPECT_FALSE(message.cancel());
    message.wait();
    EXPECT_TRUE(message.done());
    EXPECT_FALSE(message.cancel());
    mpi::barrier(mpi::comm_world());
  });
}

TEST(ChannelCancel, APreparedReceiveMayBeStartedAgain) {
  test::run_ranks(2, [](int rank) {
    Channel channel(Communicator::world());
    int value = rank;
    if (rank == 0) {
      PersistentMessage message = channel.prepare_receive(&value, sizeof value, 1);
      EXPECT_TRUE(message.done());
      message.start();
      EXPECT_TRUE(message.cancel());
      message.start();
      mpi::barrier(mpi::comm_world());
      message.wait();
      EXPECT_EQ(value, 1);
    } else {
      mpi::barrier(mpi::comm_world());
      channel.send(&value, sizeof value, 0);
    }
    mpi::barrier(mpi::comm_world());
  });
}

}  // namespace
}  // namespace ropewalk
