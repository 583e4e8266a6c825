// Messages that are probed for, withdrawn, or fail: to whom they go then.
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "messages/expect_error.hpp"
#include "mpi/library.hpp"
#include "mpi/mpi.hpp"
#include "ropewalk/channel.hpp"
#include "support/thread_mpi.hpp"

namespace ropewalk {
namespace {

using test::expect_error;
using Bytes = std::vector<std::byte>;

void on_two_nodes(const std::function<void(int)>& body, const test::RunOptions& options = {}) {
  ::setenv("ROPEWALK_NODES", "1", 1);
  test::run_ranks(2, body, options);
  ::unsetenv("ROPEWALK_NODES");
}

// ---- a message that comes between two looks of one call

int (*plain_iprobe)(int, int, mpi::Word, int*, mpi::Word) = nullptr;
std::atomic<int> looks_left{0};  // of the thread below, until the message is sent
std::atomic<bool> is_wanted{false};
std::atomic<bool> is_sent{false};
thread_local bool waits_for_message = false;

int iprobe_late(int source, int tag, mpi::Word comm, int* flag, mpi::Word status) {
  if (waits_for_message && --looks_left == 0) {
    is_wanted = true;
    while (!is_sent) std::this_thread::yield();
  }
  return plain_iprobe(source, tag, comm, flag, status);
}

TEST(ChannelMatching, AProbeLeavesAFarMessageToTheReceiveThatWaitsForIt) {
  on_two_nodes([](int rank) {
    Channel channel(Communicator::world());
    std::int64_t value = 0;
    const mpi::Library* plain = &mpi::library();
    mpi::Library late(plain->abi, plain->path);
    late.call = plain->call;
    mpi::barrier(mpi::comm_world());
    if (rank == 0) {
      plain_iprobe = late.call.iprobe;
      late.call.iprobe = &iprobe_late;
      mpi::exchange_library(&late);
      MessageRequest receive = channel.start_receive(&value, sizeof value, 1, 3);
      looks_left = 2;  // the first looks for the receive, the second is the probe's own
      waits_for_message = true;
      EXPECT_FALSE(channel.probe(1, any_tag));
      waits_for_message = false;
      receive.wait();
      EXPECT_EQ(value, 4);
    } else {
      while (!is_wanted) std::this_thread::yield();
      value = 4;
      channel.send(&value, sizeof value, 0, 3);
      is_sent = true;
    }
    mpi::barrier(mpi::comm_world());
    if (rank == 0) mpi::exchange_library(plain);
    mpi::barrier(mpi::comm_world());
  });
}

// ---- messages that are not there any more

TEST(ChannelMatching, AProbeDoesNotTellOfAMessageThatWasWithdrawn) {
  test::run_ranks(2, [](int rank) {
    Channel channel(Communicator::world());
    Bytes data(std::size_t{1} << 20);
    if (rank == 0) {
      const auto leave = [&] {
        const MessageRequest send = channel.start_send(data.data(), data.size(), 1, 2);
        mpi::barrier(mpi::comm_world());
        mpi::barrier(mpi::comm_world());
        throw std::runtime_error("gone");
      };
      EXPECT_THROW(leave(), std::runtime_error);
      channel.send(data.data(), 5, 1, 3);
    } else {
      mpi::barrier(mpi::comm_world());
      EXPECT_EQ(channel.probe(0)->bytes, data.size());
      mpi::barrier(mpi::comm_world());
    }
    mpi::barrier(mpi::comm_world());
    if (rank == 1) {
      EXPECT_FALSE(channel.probe(0, 2));
      EXPECT_EQ(channel.probe(0)->bytes, 5U);
      channel.receive(data.data(), data.size(), 0, 3);
    }
    mpi::barrier(mpi::comm_world());
  });
}

// ---- calls that fail

// Functions of this name fail on rank 0 while it is set.
struct FailingCalls {
  std::atomic<const char*> name{nullptr};
  std::atomic<int> left{0};
  test::RunOptions options() {
    test::RunOptions made;
    made.fail = [this](const char* function, int rank) {
      const char* fails = name;
      if (rank != 0 || fails == nullptr || std::strcmp(function, fails) != 0) return 0;
      if (--left == 0) name = nullptr;
      return 16;
    };
    return made;
  }
  void fail(const char* function, int times) {
    left = times;
    name = function;
  }
};

TEST(ChannelMatching, AReceiveThatCouldNotBeStartedTakesNoMessage) {
  FailingCalls calls;
  on_two_nodes(
      [&](int rank) {
        Channel channel(Communicator::world());
        std::int64_t value = rank;
        if (rank == 0) {
          std::int64_t given_up = 0;
          calls.fail("MPI_Iprobe", 1);
          expect_error(ErrorCode::mpi, "MPI_Iprobe", [&] {
            static_cast<void>(channel.start_receive(&given_up, sizeof given_up, 1));
          });
          mpi::barrier(mpi::comm_world());
          channel.receive(&value, sizeof value, 1);
          EXPECT_EQ(value, 1);
          EXPECT_EQ(given_up, 0);
        } else {
          mpi::barrier(mpi::comm_world());
          channel.send(&value, sizeof value, 0);
        }
        mpi::barrier(mpi::comm_world());
      },
      calls.options());
}

TEST(ChannelMatching, AFarReceiveThatFailsDisturbsNoOther) {
  FailingCalls calls;
  on_two_nodes(
      [&](int rank) {
        Channel channel(Communicator::world());
        Bytes data(100000, rank == 0 ? std::byte{0} : std::byte{5});
        std::int64_t value = rank;
        if (rank == 0) {
          MessageRequest fails = channel.start_receive(&value, sizeof value, 1, 2);
          MessageRequest other = channel.start_receive(data.data(), data.size(), 1, 1);
          mpi::barrier(mpi::comm_world());
          calls.fail("MPI_Irecv", 1);
          mpi::barrier(mpi::comm_world());
          other.wait();
          EXPECT_EQ(data, Bytes(100000, std::byte{5}));
          expect_error(ErrorCode::mpi, "MPI_Irecv", [&] { fails.wait(); });
          channel.receive(&value, sizeof value, 1, 2);
          EXPECT_EQ(value, 1);
        } else {
          mpi::barrier(mpi::comm_world());
          channel.send(&value, sizeof value, 0, 2);
          MessageRequest send = channel.start_send(data.data(), data.size(), 0, 1);
          mpi::barrier(mpi::comm_world());
          send.wait();
        }
        mpi::barrier(mpi::comm_world());
      },
      calls.options());
}

}  // namespace
}  // namespace ropewalk
