// A rank that waits for one thing moves on what it has begun in its channels.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "mpi/mpi.hpp"
#include "ropewalk/channel.hpp"
#include "ropewalk/collectives.hpp"
#include "ropewalk/window.hpp"
#include "support/thread_mpi.hpp"

namespace ropewalk {
namespace {

using Bytes = std::vector<std::byte>;
constexpr std::size_t large = std::size_t{1} << 20;

// Rank 0 sends a large message, which its receiver must answer, and only then does `release`;
// rank 1 has begun to receive, and comes back from `wait_for_release` first.
void send_before(const std::function<void()>& release,
                 const std::function<void()>& wait_for_release) {
  Channel channel(Communicator::world());
  if (channel.rank() == 0) {
    const Bytes sent(large, std::byte{7});
    mpi::barrier(mpi::comm_world());
    channel.send(sent.data(), large, 1);
    release();
  } else {
    Bytes came(large);
    MessageRequest receive = channel.start_receive(came.data(), large, 0);
    mpi::barrier(mpi::comm_world());
    wait_for_release();
    receive.wait();
    EXPECT_EQ(came, Bytes(large, std::byte{7}));
  }
  mpi::barrier(mpi::comm_world());
}

void exchange_beside() {
  Channel other(Communicator::world());
  std::int64_t value = 5;
  std::int64_t came = 0;
  send_before([&] { other.send(&value, sizeof value, 1); },
              [&] { other.receive(&came, sizeof came, 0); });
  if (other.rank() == 1) {
    EXPECT_EQ(came, 5);
  }
}

TEST(ChannelProgress, AWaitInOneChannelMovesAnother) {
  test::run_ranks(2, [](int) { exchange_beside(); });
}

TEST(ChannelProgress, AWaitInOneChannelMovesAnotherOverNodes) {
  ::setenv("ROPEWALK_NODES", "1", 1);
  test::run_ranks(2, [](int) { exchange_beside(); });
  ::unsetenv("ROPEWALK_NODES");
}

TEST(ChannelProgress, AWaitForASignalMovesChannels) {
  test::run_ranks(2, [](int) {
    Window window(Communicator::world(), 8, {.signals = 1});
    send_before([&] { window.signal(1, 0); }, [&] { window.wait_signal(1, 0); });
    window.fence();
  });
}

TEST(ChannelProgress, AWaitInACollectiveMovesChannels) {
  test::run_ranks(2, [](int) {
    Collectives all(Communicator::world());
    send_before([&] { all.barrier(); }, [&] { all.barrier(); });
  });
}

TEST(ChannelProgress, AProgramThatTestsAnotherChannelMovesIt) {
  test::run_ranks(2, [](int) {
    Channel other(Communicator::world());
    std::int64_t value = 0;
    send_before([&] { other.send(&value, sizeof value, 1); },
                [&] {
                  MessageRequest receive = other.start_receive(&value, sizeof value, 0);
                  while (!receive.test()) {
                  }
                });
  });
}

// The thread that began the message waits elsewhere while another one ends it.
TEST(ChannelProgress, AChannelMayGoFromThreadToThread) {
  test::run_ranks(2, [](int rank) {
    for (int turn = 0; turn < 10; ++turn) {
      Channel channel(Communicator::world());
      Channel other(Communicator::world());
      Bytes data(large, rank == 0 ? std::byte{9} : std::byte{0});
      std::int64_t value = 0;
      MessageRequest message = rank == 0 ? channel.start_send(data.data(), large, 1)
                                         : channel.start_receive(data.data(), large, 0);
      const std::uintptr_t identity = mpi::thread_identity();
      std::thread thread([&] {
        mpi::adopt_thread_identity(identity);
        message.wait();
      });
      if (rank == 0) {
        other.send(&value, sizeof value, 1);
        other.receive(&value, sizeof value, 1);
      } else {
        other.receive(&value, sizeof value, 0);
        other.send(&value, sizeof value, 0);
      }
      thread.join();
      EXPECT_EQ(data, Bytes(large, std::byte{9}));
      mpi::barrier(mpi::comm_world());
    }
  });
}

}  // namespace
}  // namespace ropewalk
