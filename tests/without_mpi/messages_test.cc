// Messages of ranks without an MPI, through the functions of the table, as every room above sees
// them. The ranks are on pretended nodes, since ranks of one node have no connections.
#include <gtest/gtest.h>

#include <stdlib.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "mpi/mpi.hpp"
#include "os/clock.hpp"
#include "support/effort.hpp"
#include "without_mpi/group_test.hpp"

namespace ropewalk::test {
namespace {

class MessagesWithoutMpi : public GroupTest {
 protected:
  MessagesWithoutMpi() { setenv("ROPEWALK_NODES", "1", 1); }
  ~MessagesWithoutMpi() override { unsetenv("ROPEWALK_NODES"); }
};

using Bytes = std::vector<std::byte>;

// Contents that differ by sender and number.
Bytes contents(std::size_t bytes, int sender, int number) {
  std::mt19937_64 random(static_cast<unsigned>(sender * 100003 + number));
  Bytes data(bytes);
  for (std::byte& one : data) one = static_cast<std::byte>(random());
  return data;
}

void complete(mpi::Request& request) {
  while (!mpi::test(request)) {
  }
}

constexpr std::size_t long_bytes = std::size_t{3} << 20;  // more than the sockets hold

TEST_F(MessagesWithoutMpi, AReceiveOfALaterMessageIsNotHeldUpByALongOne) {
  run(2, [](Communicator on, int rank) {
    const mpi::Comm comm{on.handle()};
    const Bytes first = contents(long_bytes, 0, 1);
    const Bytes second = contents(5000, 0, 2);
    if (rank == 0) {
      mpi::Request one = mpi::isend(first.data(), first.size(), 1, 1, comm);
      mpi::Request two = mpi::isend(second.data(), second.size(), 1, 2, comm);
      std::byte answer{};
      mpi::receive(&answer, 1, 1, 3, comm);  // comes before the first message is received
      complete(one);
      complete(two);
      return;
    }
    Bytes data(second.size());
    EXPECT_EQ(mpi::receive(data.data(), data.size(), 0, 2, comm).bytes, 5000);
    EXPECT_EQ(data, second);
    mpi::send(data.data(), 1, 0, 3, comm);
    data.resize(first.size());
    mpi::receive(data.data(), data.size(), 0, 1, comm);
    EXPECT_EQ(data, first);
  });
}

TEST_F(MessagesWithoutMpi, ALongMessageWithoutAReceiveWaitsAtItsSender) {
  std::atomic<bool> looked{false};
  run(2, [&](Communicator on, int rank) {
    const mpi::Comm comm{on.handle()};
    constexpr std::size_t bytes = std::size_t{64} << 20;
    if (rank == 0) {
      const Bytes data(bytes, std::byte{7});
      mpi::Request request = mpi::isend(data.data(), bytes, 1, 0, comm);
      while (!looked) ASSERT_FALSE(mpi::test(request));
      complete(request);
      return;
    }
    mpi::Status found;
    while (!mpi::iprobe(mpi::any_source(), mpi::any_tag(), comm, found)) {
    }
    EXPECT_EQ(found.bytes, static_cast<std::int64_t>(bytes));
    // A receive from another rank does not ask for it.
    std::byte own{};
    mpi::Request other = mpi::ireceive(&own, 1, 1, 0, comm);
    const std::int64_t until = os::steady_ns() + os::second_ns / 4;
    while (os::steady_ns() < until) EXPECT_FALSE(mpi::test(other));
    looked = true;
    EXPECT_TRUE(mpi::withdraw(other));
    Bytes data(bytes);
    mpi::receive(data.data(), bytes, 0, 0, comm);
    EXPECT_EQ(std::ranges::count(data, std::byte{7}), static_cast<std::ptrdiff_t>(bytes));
  });
}

TEST_F(MessagesWithoutMpi, AProbeFindsAMessageBehindALongOne) {
  run(2, [](Communicator on, int rank) {
    const mpi::Comm comm{on.handle()};
    const Bytes data = contents(long_bytes, 0, 1);
    if (rank == 0) {
      mpi::Request one = mpi::isend(data.data(), data.size(), 1, 1, comm);
      mpi::Request two = mpi::isend(data.data(), 17, 1, 2, comm);
      complete(one);
      complete(two);
      return;
    }
    mpi::Status found;
    while (!mpi::iprobe(0, 2, comm, found)) {
    }
    EXPECT_EQ(found.bytes, 17);
    Bytes got(long_bytes);
    mpi::receive(got.data(), got.size(), mpi::any_source(), mpi::any_tag(), comm);
    EXPECT_EQ(got, data);  // the first of those that match
    EXPECT_EQ(mpi::receive(got.data(), 17, 0, 2, comm).bytes, 17);
  });
}

TEST_F(MessagesWithoutMpi, TooLongAMessageIsAnErrorAndTheNextOneComes) {
  run(2, [](Communicator on, int rank) {
    const mpi::Comm comm{on.handle()};
    for (const std::size_t bytes : {std::size_t{100}, long_bytes}) {
      const Bytes data = contents(bytes, 0, 1);
      if (rank == 0) {
        mpi::send(data.data(), bytes, 1, 0, comm);
        mpi::send(data.data(), 8, 1, 0, comm);
        continue;
      }
      Bytes got(bytes, std::byte{1});
      try {
        mpi::receive(got.data(), bytes / 2, 0, 0, comm);
        ADD_FAILURE() << "expected an error";
      } catch (const Error& error) {
        const std::string text = error.what();
        EXPECT_NE(text.find("expected at most " + std::to_string(bytes / 2)), text.npos) << text;
      }
      EXPECT_TRUE(std::all_of(got.begin() + static_cast<std::ptrdiff_t>(bytes / 2), got.end(),
                              [](std::byte one) { return one == std::byte{1}; }));
      EXPECT_EQ(mpi::receive(got.data(), 8, 0, 0, comm).bytes, 8);
      EXPECT_TRUE(std::equal(got.begin(), got.begin() + 8, data.begin()));
    }
  });
}

TEST_F(MessagesWithoutMpi, ACancelledReceiveTakesNoMessage) {
  run(2, [](Communicator on, int rank) {
    const mpi::Comm comm{on.handle()};
    int value = rank;
    if (rank == 0) {
      mpi::barrier(comm);
      mpi::send(&value, sizeof value, 1, 5, comm);
      return;
    }
    int untouched = -1;
    mpi::Request request = mpi::ireceive(&untouched, sizeof untouched, 0, 5, comm);
    EXPECT_TRUE(mpi::withdraw(request));
    EXPECT_EQ(request, mpi::request_null());
    mpi::barrier(comm);
    mpi::receive(&value, sizeof value, 0, 5, comm);
    EXPECT_EQ(value, 0);
    EXPECT_EQ(untouched, -1);
  });
}

TEST_F(MessagesWithoutMpi, ARankSendsToItself) {
  run(2, [](Communicator on, int rank) {
    const mpi::Comm comm{on.handle()};
    const Bytes data = contents(long_bytes, rank, 0);
    Bytes early(data.size());
    mpi::Request request = mpi::ireceive(early.data(), early.size(), rank, 1, comm);
    mpi::send(data.data(), data.size(), rank, 1, comm);
    complete(request);
    EXPECT_EQ(early, data);
    mpi::send(data.data(), 100, rank, 2, comm);
    EXPECT_EQ(mpi::receive(early.data(), 100, mpi::any_source(), 2, comm).source, rank);
  });
}

// After a rank has freed its communicator, nothing comes from it any more, and nobody waits for it.
TEST_F(MessagesWithoutMpi, ARankThatHasGoneIsAnErrorThatNamesIt) {
  run(3, [](Communicator on, int rank) {
    mpi::Comm comm = mpi::dup({on.handle()});
    int value = 3;
    if (rank == 0) {
      for (const int peer : {1, 2}) mpi::send(&value, sizeof value, peer, 0, comm);
      mpi::free(comm);
      mpi::barrier({on.handle()});
      return;
    }
    mpi::receive(&value, sizeof value, 0, 0, comm);
    EXPECT_EQ(value, 3);
    try {
      mpi::receive(&value, sizeof value, 0, 0, comm);
      ADD_FAILURE() << "expected an error";
    } catch (const Error& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find("rank 0 on node"), text.npos) << text;
    }
    mpi::barrier({on.handle()});
    mpi::free(comm);
  });
}

// What is sent last arrives, though its sender frees the communicator at once.
TEST_F(MessagesWithoutMpi, WhatWasSentArrivesAfterItsSenderHasFreedTheCommunicator) {
  run(2, [](Communicator on, int rank) {
    for (int round = 0; round < 20; ++round) {
      mpi::Comm comm = mpi::dup({on.handle()});
      const Bytes data = contents(200000, 0, round);
      if (rank == 0) {
        mpi::Request request = mpi::isend(data.data(), data.size(), 1, 0, comm);
        complete(request);
      } else {
        Bytes got(data.size());
        mpi::receive(got.data(), got.size(), 0, 0, comm);
        EXPECT_EQ(got, data);
      }
      mpi::free(comm);
    }
  });
}

// One plan of random messages, which all ranks know: sender, receiver, tag, length. Each rank posts
// its part in an order of its own, with wildcards now and then.
struct Planned {
  int from;
  int to;
  int tag;
  std::size_t bytes;
  int number;
};

std::vector<Planned> plan(int ranks, unsigned seed) {
  std::mt19937_64 random(seed);
  std::vector<Planned> all;
  for (int number = 0; number < 40; ++number) {
    const auto draw = [&](std::uint64_t below) { return static_cast<int>(random() % below); };
    const std::size_t bytes = draw(6) == 0 ? random() % 700000 : random() % 3000;
    all.push_back({draw(static_cast<std::uint64_t>(ranks)), draw(static_cast<std::uint64_t>(ranks)),
                   draw(3), bytes, number});
  }
  return all;
}

// Messages of one pair and tag arrive in the order in which they were sent, so with a source and a
// tag the k-th receive gets the k-th message.
void run_plan(mpi::Comm comm, int rank, int ranks, unsigned seed) {
  const std::vector<Planned> all = plan(ranks, seed);
  std::mt19937_64 random(seed + 77U * static_cast<unsigned>(rank));
  std::vector<Planned> receives;
  for (const Planned& one : all) {
    if (one.to == rank) receives.push_back(one);
  }
  std::stable_sort(receives.begin(), receives.end(), [](const Planned& a, const Planned& b) {
    return std::pair(a.tag, a.from) > std::pair(b.tag, b.from);
  });
  std::vector<Bytes> sent;
  std::vector<Bytes> got;
  std::vector<mpi::Request> requests;
  const auto post_receive = [&](const Planned& one) {
    got.emplace_back(one.bytes + random() % 100);
    requests.push_back(
        mpi::ireceive(got.back().data(), got.back().size(), one.from, one.tag, comm));
  };
  sent.reserve(all.size());
  got.reserve(all.size());
  std::size_t posted = 0;
  for (const Planned& one : all) {
    while (posted < receives.size() && random() % 3 == 0) post_receive(receives[posted++]);
    if (one.from != rank) continue;
    sent.push_back(contents(one.bytes, rank, one.number));
    requests.push_back(mpi::isend(sent.back().data(), one.bytes, one.to, one.tag, comm));
    if (random() % 2 == 0) mpi::test_each(requests);
  }
  while (posted < receives.size()) post_receive(receives[posted++]);
  while (!mpi::test_each(requests)) {
  }
  for (std::size_t i = 0; i < receives.size(); ++i) {
    got[i].resize(receives[i].bytes);
    ASSERT_EQ(got[i], contents(receives[i].bytes, receives[i].from, receives[i].number))
        << "rank " << rank << ", seed " << seed << ", receive " << i;
  }
}

TEST_F(MessagesWithoutMpi, RandomMessagesCome) {
  for (const int ranks : {1, 2, 3, 5}) {
    run(ranks, [&](Communicator on, int rank) {
      if (ranks == 1) return;  // has no connections
      for (int trial = 0; trial < test::cases(40); ++trial) {
        run_plan({on.handle()}, rank, ranks, 100U * static_cast<unsigned>(ranks + trial));
      }
    });
  }
}

// Threads of a rank have a communicator each, as lanes have.
TEST_F(MessagesWithoutMpi, ThreadsOnCommunicatorsOfTheirOwn) {
  constexpr int ranks = 3;
  run(ranks, [&](Communicator on, int rank) {
    std::vector<mpi::Comm> comms;
    for (int thread = 0; thread < 3; ++thread) comms.push_back(mpi::dup({on.handle()}));
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 3; ++thread) {
      threads.emplace_back([&, thread] {
        for (int trial = 0; trial < test::cases(20); ++trial) {
          run_plan(comms[static_cast<std::size_t>(thread)], rank, ranks,
                   static_cast<unsigned>(1000 * thread + trial));
        }
      });
    }
    for (std::thread& each : threads) each.join();
    mpi::barrier({on.handle()});
    for (mpi::Comm& comm : comms) mpi::free(comm);
  });
}

TEST_F(MessagesWithoutMpi, WildcardsTakeMessagesInTheirOrder) {
  constexpr int ranks = 4;
  run(ranks, [&](Communicator on, int rank) {
    const mpi::Comm comm{on.handle()};
    constexpr int each = 50;
    if (rank != 0) {
      for (int number = 0; number < each; ++number) {
        const std::array<int, 2> data{rank, number};
        mpi::send(data.data(), sizeof data, 0, number % 7, comm);
      }
      return;
    }
    std::map<int, int> next;
    for (int k = 0; k < each * (ranks - 1); ++k) {
      std::array<int, 2> data{};
      const mpi::Status status =
          mpi::receive(data.data(), sizeof data, mpi::any_source(), mpi::any_tag(), comm);
      EXPECT_EQ(status.source, data[0]);
      EXPECT_EQ(status.tag, data[1] % 7);
      EXPECT_EQ(data[1], next[data[0]]++);
    }
  });
}

}  // namespace
}  // namespace ropewalk::test
