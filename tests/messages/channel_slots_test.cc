// What the channel promises of messages that go through slots, and of those that are prepared.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include "mpi/mpi.hpp"
#include "ropewalk/channel.hpp"
#include "support/thread_mpi.hpp"

namespace ropewalk {
namespace {

// Both send more than their slot memory holds before either receives.
TEST(ChannelSlots, MessagesUpToSlotBytesDoNotWaitForTheirReceives) {
  test::run_ranks(2, [](int rank) {
    Channel channel(Communicator::world());
    const int other = 1 - rank;
    for (const std::size_t part : {1, 2, 3, 5, 8, 40}) {
      const std::size_t bytes = channel.slot_bytes() / part;
      std::vector<char> data(bytes);
      for (int i = 0; i < 100; ++i) {
        std::memset(data.data(), i, bytes);
        channel.send(data.data(), bytes - static_cast<std::size_t>(i % 3), other, 1);
      }
      for (int i = 0; i < 100; ++i) {
        const MessageStatus status = channel.receive(data.data(), bytes, other, 1);
        EXPECT_EQ(status.bytes, bytes - static_cast<std::size_t>(i % 3));
        EXPECT_EQ(data[0], i);
        EXPECT_EQ(data[status.bytes - 1], i);
      }
    }
    mpi::barrier(mpi::comm_world());
  });
}

// Slots of half the memory: a short message before its end and the gap behind it leave no room.
TEST(ChannelSlots, ALongSlotDoesNotWaitBehindAGap) {
  test::run_ranks(3, [](int rank) {
    Channel channel(Communicator::world(), {.force = Mechanism::slots});
    constexpr std::size_t kib = 1024;
    ASSERT_EQ(channel.slot_bytes(), 64 * kib);
    std::vector<char> data(64 * kib);
    char token = 0;
    if (rank == 0) {
      channel.receive(data.data(), data.size(), 1);
      mpi::barrier(mpi::comm_world());
      channel.receive(&token, 1, 2);
      EXPECT_EQ(channel.receive(data.data(), data.size(), 1).bytes, 10 * kib);
      EXPECT_EQ(channel.receive(data.data(), data.size(), 1).bytes, 64 * kib);
    } else if (rank == 1) {
      channel.send(data.data(), 60 * kib, 0);
      mpi::barrier(mpi::comm_world());
      channel.send(data.data(), 10 * kib, 0);
      channel.send(data.data(), 64 * kib, 0);
      channel.send(&token, 1, 2);
    } else {
      mpi::barrier(mpi::comm_world());
      channel.receive(&token, 1, 1);
      channel.send(&token, 1, 0);
    }
    mpi::barrier(mpi::comm_world());
  });
}

TEST(ChannelSlots, PersistentMessagesGoOnWhenTheirChannelIsMoved) {
  test::run_ranks(2, [](int rank) {
    Channel channel(Communicator::world());
    const int other = 1 - rank;
    int sent = rank + 10;
    int received = 0;
    PersistentMessage send = channel.prepare_send(&sent, sizeof sent, other);
    PersistentMessage receive = channel.prepare_receive(&received, sizeof received, other);
    Channel moved = std::move(channel);
    receive.start();
    send.start();
    send.wait();
    receive.wait();
    EXPECT_EQ(received, other + 10);
    mpi::barrier(mpi::comm_world());
  });
}

}  // namespace
}  // namespace ropewalk
