// What a channel promises, on ranks as threads: each mechanism, matching, errors, ends.
#include "ropewalk/channel.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "messages/expect_error.hpp"
#include "mpi/mpi.hpp"
#include "ropewalk/memory.hpp"
#include "support/thread_mpi.hpp"
#include "tuning/profile.hpp"

namespace ropewalk {
namespace {

using test::expect_error;

using Bytes = std::vector<std::byte>;

Bytes pattern(std::size_t bytes, unsigned seed) {
  Bytes data(bytes);
  std::uint32_t state = seed * 2654435761U + 1;
  for (std::byte& each : data) {
    state = state * 1664525U + 1013904223U;
    each = static_cast<std::byte>(state >> 24);
  }
  return data;
}

void on_ranks(int ranks, const std::function<void(Channel&)>& body,
              const ChannelOptions& options = {}) {
  test::run_ranks(ranks, [&](int) {
    Channel channel(Communicator::world(), options);
    body(channel);
    mpi::barrier(mpi::comm_world());
  });
}

// This is memory of the arena, as a buffer of bytes.
class ArenaBytes {
 public:
  explicit ArenaBytes(std::size_t bytes)
      : data_(static_cast<std::byte*>(Arena::process().allocate(bytes, 64))) {}
  ~ArenaBytes() { Arena::process().deallocate(data_); }
  ArenaBytes(const ArenaBytes&) = delete;
  ArenaBytes& operator=(const ArenaBytes&) = delete;
  std::byte* data() const { return data_; }

 private:
  std::byte* data_;
};

constexpr std::size_t lengths[] = {0,    1,    40,    41,     104,    105,    4096,
                                   8192, 8193, 65536, 100000, 300001, 2 << 20};

class EachMechanism : public testing::TestWithParam<Mechanism> {};

// Every length goes from and to private memory and the arena, both ways.
TEST_P(EachMechanism, BringsWhatWasSent) {
  on_ranks(2,
           [](Channel& channel) {
             const int other = 1 - channel.rank();
             for (const std::size_t bytes : lengths) {
               for (int kind = 0; kind < 4; ++kind) {
                 const ArenaBytes memory(bytes + 1);
                 const ArenaBytes target(bytes + 1);
                 Bytes sent = pattern(bytes, static_cast<unsigned>(channel.rank()) + 1);
                 Bytes came(bytes);
                 std::byte* from = (kind & 1) != 0 ? memory.data() : sent.data();
                 std::byte* to = (kind & 2) != 0 ? target.data() : came.data();
                 if (from != sent.data() && bytes != 0) std::memcpy(from, sent.data(), bytes);
                 if (channel.rank() == 0) {
                   channel.send(from, bytes, other, 7);
                   channel.receive(to, bytes, other, 8);
                 } else {
                   const MessageStatus status = channel.receive(to, bytes, other, 7);
                   EXPECT_EQ(status.bytes, bytes);
                   EXPECT_EQ(status.source, other);
                   EXPECT_EQ(status.tag, 7);
                   channel.send(from, bytes, other, 8);
                 }
                 const Bytes expected = pattern(bytes, static_cast<unsigned>(other) + 1);
                 EXPECT_TRUE(bytes == 0 || std::memcmp(to, expected.data(), bytes) == 0)
                     << bytes << " bytes, kind " << kind;
               }
             }
           },
           {.force = GetParam()});
}

INSTANTIATE_TEST_SUITE_P(Channel, EachMechanism,
                         testing::Values(Mechanism::none, Mechanism::receiver, Mechanism::sender,
                                         Mechanism::both, Mechanism::pipeline),
                         [](const auto& each) { return name(each.param); });

// One rank has three threads, the other one copies alone.
TEST(Channel, CopiesLargeMessagesByAllThreadsOfARank) {
  test::run_ranks(2, [](int rank) {
    const int threads = rank == 1 ? 3 : 1;
    Channel channel(Communicator::world(), {.threads = threads});
    for (const std::size_t bytes : {std::size_t{256} * 1024 - 1, std::size_t{256} * 1024,
                                    std::size_t{3'000'001}, std::size_t{8} << 20}) {
      const ArenaBytes from(bytes);
      const ArenaBytes to(bytes);
      const Bytes sent = pattern(bytes, static_cast<unsigned>(rank) + 1);
      std::memcpy(from.data(), sent.data(), bytes);
      channel.send_receive(from.data(), bytes, 1 - rank, 0, to.data(), bytes, 1 - rank, 0);
      const Bytes expected = pattern(bytes, static_cast<unsigned>(1 - rank) + 1);
      EXPECT_EQ(std::memcmp(to.data(), expected.data(), bytes), 0) << bytes;
      const bool by_threads = rank == 1 && bytes >= std::size_t{256} * 1024;
      EXPECT_EQ(channel.last_mechanism(), by_threads ? Mechanism::threaded : Mechanism::both);
    }
  });
}

TEST(Channel, RefusesNumbersOfThreadsOnAllRanks) {
  test::run_ranks(2, [](int rank) {
    expect_error(ErrorCode::argument, "threads: 65, expected 1 to 64", [&] {
      const Channel channel(Communicator::world(), {.threads = rank == 0 ? 65 : 2});
    });
  });
}

// The mechanism of a message of so many bytes from private to private memory.
Mechanism private_mechanism(Channel& channel, std::size_t bytes) {
  const Bytes sent = pattern(bytes, 5);
  Bytes came(bytes);
  if (channel.rank() == 0) {
    channel.send(sent.data(), bytes, 1);
    channel.receive(came.data(), bytes, 1);
  } else {
    channel.receive(came.data(), bytes, 0);
    channel.send(sent.data(), bytes, 0);
  }
  EXPECT_EQ(came, sent);
  return channel.last_mechanism();
}

TEST(Channel, TheKernelCopiesPrivateMemoryFromItsThresholdOn) {
  test::run_ranks(2, [](int) {
    Channel forced(Communicator::world(), {.force = Mechanism::both});
    const Mechanism by_kernel = private_mechanism(forced, 70000);  // a pipeline: it refuses
    const tuning::Trial never("channel.kernel_bytes = 1T");
    Channel untuned(Communicator::world());
    EXPECT_EQ(private_mechanism(untuned, 70000), Mechanism::pipeline);
    const tuning::Trial trial("channel.kernel_bytes = 64K");
    Channel tuned(Communicator::world());
    EXPECT_EQ(private_mechanism(tuned, 64 * 1024 - 1), Mechanism::pipeline);
    EXPECT_EQ(private_mechanism(tuned, 64 * 1024), by_kernel);
    EXPECT_EQ(private_mechanism(tuned, 300001), by_kernel);
    mpi::barrier(mpi::comm_world());
  });
}

// Several messages that the kernel copies wait at once, in either direction, for receives that were
// started before or after them; ranks take whole ones from each other.
TEST(Channel, RanksShareMessagesThatTheKernelCopies) {
  test::run_ranks(2, [](int rank) {
    const tuning::Trial trial("channel.private_slot_bytes = 4K\nchannel.kernel_bytes = 4K");
    Channel channel(Communicator::world());
    std::mt19937 random(14);
    for (int round = 0; round < 40; ++round) {
      const bool receives_first = round % 3 != 0;
      std::vector<Bytes> sent[2];
      std::vector<Bytes> came;
      for (std::size_t from = 0; from < 2; ++from) {
        for (unsigned i = 0; i < 1 + static_cast<unsigned>(round) % 20; ++i) {
          sent[from].push_back(pattern(4097 + random() % 70000, i + static_cast<unsigned>(from)));
        }
      }
      const auto own = static_cast<std::size_t>(rank);
      for (const Bytes& each : sent[1 - own]) came.emplace_back(each.size());
      std::vector<MessageRequest> requests;
      const auto send = [&] {
        for (const Bytes& each : sent[own]) {
          requests.push_back(channel.start_send(each.data(), each.size(), 1 - rank));
        }
      };
      if (!receives_first) send();
      for (Bytes& each : came) {
        requests.push_back(channel.start_receive(each.data(), each.size(), 1 - rank));
      }
      if (receives_first) send();
      for (MessageRequest& request : requests) request.wait();
      ASSERT_EQ(came, sent[1 - own]);
    }
    mpi::barrier(mpi::comm_world());
  });
}

TEST(Channel, MatchesByTagOutOfOrder) {
  on_ranks(2, [](Channel& channel) {
    const int lengths_of[] = {8, 200, 20000, 8};
    if (channel.rank() == 0) {
      std::vector<MessageRequest> sends;
      std::vector<Bytes> data;
      for (int tag = 0; tag < 4; ++tag) {
        data.push_back(
            pattern(static_cast<std::size_t>(lengths_of[tag]), static_cast<unsigned>(tag)));
      }
      for (int tag = 0; tag < 4; ++tag) {
        sends.push_back(channel.start_send(data[static_cast<std::size_t>(tag)].data(),
                                           data[static_cast<std::size_t>(tag)].size(), 1, tag));
      }
      for (MessageRequest& send : sends) send.wait();
    } else {
      for (int tag = 3; tag >= 0; --tag) {
        Bytes came(static_cast<std::size_t>(lengths_of[tag]));
        channel.receive(came.data(), came.size(), 0, tag);
        EXPECT_EQ(came, pattern(came.size(), static_cast<unsigned>(tag))) << tag;
      }
    }
  });
}

// There are more messages than a ring has cells, of all kinds, to a rank that first waits for
// another.
TEST(Channel, ManyMessagesThatNobodyWaitsForDoNotBlockTheirSender) {
  on_ranks(3, [](Channel& channel) {
    constexpr int messages = 500;
    std::int64_t value = 0;
    if (channel.rank() == 1) {
      for (int i = 0; i < messages; ++i) {
        value = i;
        channel.send(&value, sizeof value, 0, 1);
      }
      channel.send(&value, sizeof value, 2, 2);
    } else if (channel.rank() == 2) {
      channel.receive(&value, sizeof value, 1, 2);
      channel.send(&value, sizeof value, 0, 3);
    } else {
      channel.receive(&value, sizeof value, 2, 3);
      for (int i = 0; i < messages; ++i) {
        channel.receive(&value, sizeof value, 1, 1);
        EXPECT_EQ(value, i);
      }
    }
  });
}

TEST(Channel, AnySourceTakesFromAll) {
  on_ranks(4, [](Channel& channel) {
    if (channel.rank() != 0) {
      for (int i = 0; i < 20; ++i) {
        const int value = channel.rank() * 100 + i;
        channel.send(&value, sizeof value, 0, i % 3);
      }
      return;
    }
    std::vector<int> last(4, -1);
    for (int i = 0; i < 60; ++i) {
      int value = 0;
      const MessageStatus status = channel.receive(&value, sizeof value, any_source, any_tag);
      const int number = value - status.source * 100;
      EXPECT_EQ(number, last[static_cast<std::size_t>(status.source)] + 1);
      EXPECT_EQ(status.tag, number % 3);
      last[static_cast<std::size_t>(status.source)] = number;
    }
  });
}

TEST(Channel, ReceivesAreServedInTheirOrder) {
  on_ranks(2, [](Channel& channel) {
    if (channel.rank() == 0) {
      mpi::barrier(mpi::comm_world());
      for (int i = 0; i < 2; ++i) channel.send(&i, sizeof i, 1, 5);
    } else {
      int first = -1;
      int second = -1;
      MessageRequest open = channel.start_receive(&first, sizeof first, any_source, any_tag);
      MessageRequest named = channel.start_receive(&second, sizeof second, 0, 5);
      mpi::barrier(mpi::comm_world());
      named.wait();
      open.wait();
      EXPECT_EQ(first, 0);
      EXPECT_EQ(second, 1);
    }
  });
}

TEST(Channel, SendsToItself) {
  on_ranks(1, [](Channel& channel) {
    const Bytes sent = pattern(100000, 3);
    Bytes came(sent.size());
    channel.send(sent.data(), sent.size(), 0, 1);
    channel.receive(came.data(), came.size(), 0, 1);
    EXPECT_EQ(came, sent);
    MessageRequest receive = channel.start_receive(came.data(), came.size(), any_source, any_tag);
    channel.send(sent.data(), 10, 0, 2);
    receive.wait();
    EXPECT_EQ(receive.status().bytes, 10U);
  });
}

TEST(Channel, ExchangesBothWays) {
  for (const Mechanism force : {Mechanism::none, Mechanism::pipeline, Mechanism::both}) {
    on_ranks(2,
             [](Channel& channel) {
               const int other = 1 - channel.rank();
               const Bytes sent = pattern(500000, static_cast<unsigned>(channel.rank()));
               Bytes came(sent.size());
               channel.send_receive(sent.data(), sent.size(), other, 0, came.data(), came.size(),
                                    other, 0);
               EXPECT_EQ(came, pattern(sent.size(), static_cast<unsigned>(other)));
             },
             {.force = force});
  }
}

// The receive comes back while the sender is elsewhere, from every kind of memory.
TEST(Channel, ASenderThatDoesNotLookDoesNotHoldItsReceiver) {
  on_ranks(2, [](Channel& channel) {
    constexpr std::size_t bytes = 3 << 20;
    for (int kind = 0; kind < 4; ++kind) {
      const ArenaBytes memory(bytes);
      Bytes own(bytes);
      const Bytes expected = pattern(bytes, static_cast<unsigned>(kind));
      const bool in_arena = (kind & (1 << channel.rank())) != 0;
      std::byte* data = in_arena ? memory.data() : own.data();
      if (channel.rank() == 0) {
        std::memcpy(data, expected.data(), bytes);
        MessageRequest send = channel.start_send(data, bytes, 1);
        mpi::barrier(mpi::comm_world());
        send.wait();
      } else {
        channel.receive(data, bytes, 0);
        EXPECT_EQ(std::memcmp(data, expected.data(), bytes), 0) << kind;
        mpi::barrier(mpi::comm_world());
      }
    }
  });
}

TEST(Channel, PersistentMessagesAreSentAgain) {
  on_ranks(2, [](Channel& channel) {
    std::vector<int> data(5000);
    PersistentMessage message =
        channel.rank() == 0 ? channel.prepare_send(data.data(), data.size() * sizeof(int), 1, 4)
                            : channel.prepare_receive(data.data(), data.size() * sizeof(int), 0, 4);
    for (int turn = 0; turn < 10; ++turn) {
      if (channel.rank() == 0) data.assign(data.size(), turn);
      message.start();
      message.wait();
      EXPECT_EQ(data, std::vector<int>(data.size(), turn));
    }
  });
}

TEST(Channel, ProbeTellsWhatAReceiveWouldTake) {
  on_ranks(2, [](Channel& channel) {
    Bytes data(30000);
    if (channel.rank() == 0) {
      int small = 1;
      channel.send(&small, sizeof small, 1, 1);
      channel.send(data.data(), data.size(), 1, 2);
      return;
    }
    std::optional<MessageStatus> found;
    while (!(found = channel.probe(any_source, 2))) {
    }
    EXPECT_EQ(found->bytes, data.size());
    EXPECT_EQ(found->source, 0);
    EXPECT_EQ(channel.probe(0, 1)->bytes, sizeof(int));
    EXPECT_FALSE(channel.probe(0, 3));
    channel.receive(data.data(), data.size(), 0, 2);
    channel.receive(data.data(), data.size(), 0, 1);
    EXPECT_FALSE(channel.probe(any_source, any_tag));
  });
}

TEST(Channel, AMessageLongerThanItsBufferIsAnErrorAndIsDropped) {
  for (const std::size_t bytes : {std::size_t{50}, std::size_t{5000}, std::size_t{500000}}) {
    on_ranks(2, [&](Channel& channel) {
      Bytes data(bytes);
      int next = 17;
      if (channel.rank() == 0) {
        channel.send(data.data(), bytes, 1, 1);
        channel.send(&next, sizeof next, 1, 1);
      } else {
        expect_error(ErrorCode::argument, "bytes: a message of",
                     [&] { channel.receive(data.data(), bytes - 1, 0, 1); });
        next = 0;
        channel.receive(&next, sizeof next, 0, 1);
        EXPECT_EQ(next, 17);
      }
    });
  }
}

TEST(Channel, ArgumentsAreChecked) {
  on_ranks(2, [](Channel& channel) {
    int value = 0;
    const auto size = sizeof value;
    expect_error(ErrorCode::argument, "to: rank 2", [&] { channel.send(&value, size, 2); });
    expect_error(ErrorCode::argument, "to: rank -1", [&] { channel.send(&value, size, -1); });
    expect_error(ErrorCode::argument, "tag: -1", [&] { channel.send(&value, size, 1, -1); });
    expect_error(ErrorCode::argument, "data: null", [&] { channel.send(nullptr, size, 1); });
    expect_error(ErrorCode::argument, "from: rank 9", [&] { channel.receive(&value, size, 9); });
    expect_error(ErrorCode::argument, "tag: -2", [&] { channel.receive(&value, size, 0, -2); });
    expect_error(ErrorCode::argument, "rank: rank 5", [&] { (void)channel.is_near(5); });
    expect_error(ErrorCode::argument, "message: empty", [] { PersistentMessage().start(); });
  });
}

TEST(Channel, ARankThatEndsItsChannelIsAnErrorForThoseThatWait) {
  test::run_ranks(2, [](int rank) {
    {
      Channel channel(Communicator::world());
      int value = 5;
      Bytes large(1 << 20);
      if (rank == 0) {
        channel.send(&value, sizeof value, 1, 1);
      } else {
        expect_error(ErrorCode::peer_dead, "receive: rank 0 has ended the channel",
                     [&] { channel.receive(&value, sizeof value, 0, 2); });
        expect_error(ErrorCode::peer_dead, "receive: all other ranks have ended the channel",
                     [&] { channel.receive(&value, sizeof value, any_source, 2); });
        expect_error(ErrorCode::peer_dead, "send: rank 0 has ended the channel",
                     [&] { channel.send(large.data(), large.size(), 0, 2); });
        channel.receive(&value, sizeof value, 0, 1);  // sent before the end
        EXPECT_EQ(value, 5);
      }
    }
    mpi::barrier(mpi::comm_world());
  });
}

// The other rank takes a message back, by an exception, and ends its channel.
TEST(Channel, AnExceptionWithdrawsWhatWasOffered) {
  test::run_ranks(2, [](int rank) {
    const Bytes large(1 << 20);
    try {
      Channel channel(Communicator::world());
      if (rank == 0) {
        const MessageRequest send = channel.start_send(large.data(), large.size(), 1, 1);
        throw std::runtime_error("of the program");
      }
      mpi::barrier(mpi::comm_world());  // the message is taken back before it is received
      Bytes came(large.size());
      expect_error(ErrorCode::peer_dead, "receive: rank 0 has ended the channel",
                   [&] { channel.receive(came.data(), came.size(), 0, 1); });
    } catch (const std::runtime_error&) {
      EXPECT_EQ(rank, 0);
      mpi::barrier(mpi::comm_world());
    }
    mpi::barrier(mpi::comm_world());
  });
}

TEST(Channel, BetweenNodesMessagesGoByMpi) {
  ::setenv("ROPEWALK_NODES", "2", 1);
  on_ranks(4, [](Channel& channel) {
    EXPECT_EQ(channel.is_near(channel.rank() ^ 1), true);
    EXPECT_EQ(channel.is_near(channel.rank() ^ 2), false);
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{8}, std::size_t{100000}}) {
      std::vector<MessageRequest> requests;
      const Bytes sent = pattern(bytes, static_cast<unsigned>(channel.rank()));
      std::vector<Bytes> came(4, Bytes(bytes));
      for (int rank = 0; rank < 4; ++rank) {
        auto& target = came[static_cast<std::size_t>(rank)];
        requests.push_back(channel.start_receive(target.data(), bytes, any_source, rank));
      }
      // To rank r with its own number as the tag: the receive of each tag gets that rank's.
      for (int rank = 0; rank < 4; ++rank) {
        requests.push_back(channel.start_send(sent.data(), bytes, rank, channel.rank()));
      }
      for (MessageRequest& request : requests) request.wait();
      for (int rank = 0; rank < 4; ++rank) {
        EXPECT_EQ(came[static_cast<std::size_t>(rank)],
                  pattern(bytes, static_cast<unsigned>(rank)));
        EXPECT_EQ(requests[static_cast<std::size_t>(rank)].status().source, rank);
      }
      mpi::barrier(mpi::comm_world());
    }
  });
  ::unsetenv("ROPEWALK_NODES");
}

}  // namespace
}  // namespace ropewalk
