// Tests plans on ranks as threads: every strategy and number of lanes against the naive
// expectation.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "mpi/mpi.hpp"
#include "ropewalk/endpoint.hpp"
#include "support/thread_mpi.hpp"
#include "transport/message_set.hpp"

namespace ropewalk::test {
namespace {

constexpr std::size_t split_bytes = 1000;
const RunOptions rendezvous_above_300{.eager_bytes = 300};

EndpointOptions options_of(int lanes, bool threads) {
  return {.lanes = lanes, .threads = threads, .pin = true, .split_bytes = split_bytes};
}

// Throws what is wrong, so that the other ranks of the run end too.
void require(const std::string& complaint) {
  if (!complaint.empty()) throw std::runtime_error(complaint);
}

void exchange(MessagePlan& plan, MessageSet& set, Strategy strategy, int iteration) {
  set.fill(iteration);
  mpi::barrier(mpi::comm_world());  // nobody's late fill() overwrites what came early
  plan.start(strategy);
  if (iteration % 2 == 1) {
    while (!plan.test()) std::this_thread::yield();
  }
  plan.wait();
  require(set.check(iteration));
}

class Plans : public testing::TestWithParam<std::tuple<int, int>> {};

TEST_P(Plans, RandomMessagesArriveWhateverTheStrategy) {
  const auto [ranks, lanes] = GetParam();
  run_ranks(
      ranks,
      [&, ranks = ranks, lanes = lanes](int rank) {
        EndpointSet endpoints(Communicator::world(), options_of(lanes, true));
        for (unsigned seed = 0; seed < 3; ++seed) {
          MessageSet set(seed, ranks, rank, {.messages = 6 * ranks, .lanes = lanes});
          MessagePlan plan = endpoints.plan(set.messages());
          require(plan.send_bytes() == set.send_bytes() ? "" : "send_bytes");
          for (int iteration = 0; iteration < 4; ++iteration) {
            for (const Strategy strategy :
                 {Strategy::sequential, Strategy::concurrent, Strategy::threaded}) {
              exchange(plan, set, strategy, iteration);
            }
          }
        }
      },
      rendezvous_above_300);
}

TEST_P(Plans, RanksMayDifferInStrategy) {
  const auto [ranks, lanes] = GetParam();
  run_ranks(
      ranks,
      [&, ranks = ranks, lanes = lanes](int rank) {
        EndpointSet endpoints(Communicator::world(), options_of(lanes, true));
        MessageSet set(7, ranks, rank, {.messages = 8 * ranks, .lanes = lanes});
        MessagePlan plan = endpoints.plan(set.messages());
        constexpr Strategy strategies[] = {Strategy::threaded, Strategy::concurrent,
                                           Strategy::sequential, Strategy::automatic};
        for (int i = 0; i < 8; ++i) exchange(plan, set, strategies[(rank + i) % 4], i);
      },
      rendezvous_above_300);
}

// As OpenMP threads would, one a lane (Meadows 2018).
TEST_P(Plans, TheCallersOwnThreadsUseTheLanes) {
  const auto [ranks, lanes] = GetParam();
  run_ranks(
      ranks,
      [&, ranks = ranks, lanes = lanes](int rank) {
        EndpointSet endpoints(Communicator::world(), options_of(lanes, false));
        require(endpoints.has_threads() ? "has threads" : "");
        MessageSet set(11, ranks, rank, {.messages = 6 * ranks, .lanes = lanes});
        MessagePlan plan = endpoints.plan(set.messages());
        for (int iteration = 0; iteration < 3; ++iteration) {
          set.fill(iteration);
          mpi::barrier(mpi::comm_world());
          std::vector<std::thread> team;
          for (int lane = 0; lane < lanes; ++lane) {
            team.emplace_back([&plan, lane, identity = mpi::thread_identity()] {
              mpi::adopt_thread_identity(identity);
              plan.exchange_lane(lane);
            });
          }
          for (std::thread& thread : team) thread.join();
          require(set.check(iteration));
          exchange(plan, set, Strategy::concurrent, iteration);
        }
      },
      rendezvous_above_300);
}

INSTANTIATE_TEST_SUITE_P(RanksAndLanes, Plans,
                         testing::Combine(testing::Values(1, 2, 3, 5, 8), testing::Values(1, 2, 3)),
                         [](const auto& tested) {
                           return std::to_string(std::get<0>(tested.param)) + "ranks" +
                                  std::to_string(std::get<1>(tested.param)) + "lanes";
                         });

TEST(Plan, SeveralPlansAreUnderWayAtOnceAndEndInAnyOrder) {
  run_ranks(3, [](int rank) {
    EndpointSet endpoints(Communicator::world(), options_of(2, true));
    std::vector<MessageSet> sets;
    std::vector<MessagePlan> plans;
    sets.reserve(4);
    for (unsigned seed = 0; seed < 4; ++seed) {
      sets.emplace_back(seed, 3, rank, SetShape{.messages = 10, .lanes = 2});
      std::vector<Message> messages = sets.back().messages();
      for (Message& message : messages) message.tag += 10 * static_cast<int>(seed);
      plans.push_back(endpoints.plan(messages));
      sets.back().fill(5);
    }
    mpi::barrier(mpi::comm_world());
    // Each rank starts and ends them in an order of its own; tags keep them apart.
    for (std::size_t i = 0; i < 4; ++i) {
      plans[(i + static_cast<std::size_t>(rank)) % 4].start(i % 2 == 0 ? Strategy::threaded
                                                                       : Strategy::concurrent);
    }
    // The caller's own plans progress only in test(): round robin.
    for (bool all = false; !all;) {
      all = true;
      for (MessagePlan& plan : plans) all = plan.test() && all;
      std::this_thread::yield();
    }
    for (MessageSet& set : sets) require(set.check(5));
  });
}

TEST(Plan, EmptyPlansAndEmptyMessagesAreFine) {
  run_ranks(2, [](int rank) {
    EndpointSet endpoints(Communicator::world(), options_of(2, true));
    MessagePlan none = endpoints.plan({});
    MessagePlan empty = endpoints.plan({{Message::Kind::send, nullptr, 0, 1 - rank, 0},
                                        {Message::Kind::receive, nullptr, 0, 1 - rank, 0}});
    for (const Strategy strategy :
         {Strategy::sequential, Strategy::concurrent, Strategy::threaded}) {
      none.start(strategy);
      EXPECT_TRUE(none.test());
      none.wait();
      empty.start(strategy);
      empty.wait();
    }
    none.wait();  // nothing started: nothing to wait for
    EXPECT_TRUE(none.test());
    EXPECT_EQ(none.send_bytes(), 0U);
  });
}

TEST(Plan, OutlivesItsEndpointSet) {
  run_ranks(2, [](int rank) {
    auto endpoints = std::make_unique<EndpointSet>(Communicator::world(), options_of(2, true));
    MessageSet set(3, 2, rank, {.lanes = 2});
    MessagePlan plan = endpoints->plan(set.messages());
    endpoints.reset();
    exchange(plan, set, Strategy::threaded, 0);
    exchange(plan, set, Strategy::concurrent, 1);
  });
}

TEST(Plan, DestructionAndAssignmentWaitForWhatWasStarted) {
  run_ranks(2, [](int rank) {
    EndpointSet endpoints(Communicator::world(), options_of(2, true));
    MessageSet set(4, 2, rank, {.lanes = 2});
    for (const Strategy strategy :
         {Strategy::sequential, Strategy::concurrent, Strategy::threaded}) {
      set.fill(1);
      mpi::barrier(mpi::comm_world());
      {
        MessagePlan plan = endpoints.plan(set.messages());
        plan.start(strategy);
      }
      require(set.check(1));
      set.fill(2);
      mpi::barrier(mpi::comm_world());
      MessagePlan plan = endpoints.plan(set.messages());
      plan.start(strategy);
      plan = endpoints.plan({});
      require(set.check(2));
    }
  });
}

// ---- errors -----------------------------------------------------------------------------------

template <class Call>
std::string error_of(ErrorCode code, Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no Error";
  return "";
}

TEST(Plan, WrongMessagesAreRefusedByName) {
  run_ranks(1, [](int) {
    EndpointSet endpoints(Communicator::world(), options_of(2, true));
    std::byte byte{};
    const auto refused = [&](const Message& message) {
      return error_of(ErrorCode::argument, [&] { endpoints.plan({message}); });
    };
    const auto send = Message::Kind::send;
    EXPECT_EQ(refused({send, &byte, 1, 1, 0}).find("peer: message 0 has 1"), 0U);
    EXPECT_EQ(refused({send, &byte, 1, -1, 0}).find("peer: "), 0U);
    EXPECT_EQ(refused({send, &byte, 1, 0, 4096}).find("tag: message 0 has 4096"), 0U);
    EXPECT_EQ(refused({send, &byte, 1, 0, -1}).find("tag: "), 0U);
    EXPECT_EQ(refused({send, &byte, 1, 0, 0, 2}).find("lane: message 0 has 2"), 0U);
    EXPECT_EQ(refused({send, &byte, 1, 0, 0, -2}).find("lane: "), 0U);
    EXPECT_EQ(refused({send, nullptr, 1, 0, 0}).find("data: "), 0U);
  });
}

TEST(Plan, SecondStartAndThreadedWithoutThreadsAreRefused) {
  run_ranks(1, [](int) {
    EndpointSet endpoints(Communicator::world(), options_of(2, false));
    MessageSet set(1, 1, 0, {.lanes = 2});
    MessagePlan plan = endpoints.plan(set.messages());
    const std::string text = error_of(ErrorCode::argument, [&] { plan.start(Strategy::threaded); });
    EXPECT_NE(text.find("EndpointOptions::threads"), std::string::npos) << text;
    plan.start();
    EXPECT_EQ(error_of(ErrorCode::argument, [&] { plan.start(); }).find("start: "), 0U);
    EXPECT_EQ(error_of(ErrorCode::argument, [&] { plan.exchange_lane(0); }).find("start: "), 0U);
    plan.wait();
    EXPECT_EQ(error_of(ErrorCode::argument, [&] { plan.exchange_lane(2); }).find("lane: 2"), 0U);
    set.fill(0);
    plan.start();
    plan.wait();
    EXPECT_EQ(set.check(0), "");
  });
}

class Strategies : public testing::TestWithParam<Strategy> {};
INSTANTIATE_TEST_SUITE_P(All, Strategies,
                         testing::Values(Strategy::sequential, Strategy::concurrent,
                                         Strategy::threaded),
                         [](const auto& tested) { return std::string(name(tested.param)); });

// Every rank sends to every other, more than an eager message, and receives as much.
struct AllToAll {
  static constexpr std::size_t bytes = 5000;
  std::vector<std::vector<std::byte>> buffers;
  std::vector<Message> messages;

  AllToAll(int ranks, int rank) : buffers(2 * static_cast<std::size_t>(ranks)) {
    for (int peer = 0; peer < ranks; ++peer) {
      auto& to = buffers[2 * static_cast<std::size_t>(peer)];
      auto& from = buffers[2 * static_cast<std::size_t>(peer) + 1];
      to.resize(bytes);
      from.resize(bytes);
      const int step = (peer - rank + ranks) % ranks;
      const int back = (rank - peer + ranks) % ranks;
      messages.push_back({Message::Kind::send, to.data(), bytes, peer, 1, -1, step});
      messages.push_back({Message::Kind::receive, from.data(), bytes, peer, 1, -1, back});
    }
  }
};

// MPI fails on rank 1. Its caller gets MPI's text; the others give up too. run_ranks() checks that
// no request and no communicator is left.
TEST_P(Strategies, WhatMpiReportsReachesTheCallerAndNothingStaysPending) {
  for (const std::string function : {"MPI_Isend", "MPI_Irecv", "MPI_Testall"}) {
    std::atomic<int> countdown{1 << 30};
    RunOptions options{.eager_bytes = 300};
    options.fail = [&](const char* called, int rank) {
      return rank == 1 && function == called && countdown.fetch_sub(1) == 1 ? 17 : 0;
    };
    run_ranks(
        3,
        [&](int rank) {
          EndpointSet endpoints(Communicator::world(), options_of(2, true));
          AllToAll exchange(3, rank);
          MessagePlan plan = endpoints.plan(exchange.messages);
          plan.start(GetParam());
          plan.wait();
          mpi::barrier(mpi::comm_world());
          // Which of the calls to come fails. The first test may already be the last.
          if (rank == 1) countdown = function == "MPI_Testall" ? 1 : 3;
          plan.start(GetParam());
          if (rank == 1) {
            const std::string text = error_of(ErrorCode::mpi, [&] { plan.wait(); });
            EXPECT_NE(text.find(function), std::string::npos) << text;
          } else {
            plan.cancel();
          }
          EXPECT_TRUE(plan.test());
          const std::string text = error_of(ErrorCode::mpi, [&] { plan.start(); });
          EXPECT_NE(text.find("new EndpointSet"), std::string::npos) << text;
        },
        options);
  }
}

// All throw between start and wait; or one alone has started; or one alone throws while the others
// go on to the end.
TEST_P(Strategies, RanksThatThrowLeaveNothingPending) {
  for (const int starters : {3, 1}) {
    run_ranks(
        3,
        [&](int rank) {
          try {
            AllToAll exchange(3, rank);
            EndpointSet endpoints(Communicator::world(), options_of(2, true));
            MessagePlan plan = endpoints.plan(exchange.messages);
            if (rank < starters) plan.start(GetParam());
            throw std::runtime_error("the program's own");
          } catch (const std::runtime_error& error) {
            EXPECT_STREQ(error.what(), "the program's own");
          }
        },
        rendezvous_above_300);
  }
  EXPECT_EQ(live_communicators(), 0U);
}

TEST_P(Strategies, AnExceptionThatWasThereBeforeDoesNotCancel) {
  run_ranks(2, [&](int rank) {
    EndpointSet endpoints(Communicator::world(), options_of(2, true));
    MessageSet set(9, 2, rank, {.lanes = 2});
    set.fill(0);
    mpi::barrier(mpi::comm_world());
    struct ExchangesWhileUnwinding {
      EndpointSet& endpoints;
      MessageSet& set;
      Strategy strategy;
      ~ExchangesWhileUnwinding() {
        MessagePlan plan = endpoints.plan(set.messages());
        plan.start(strategy);
      }
    };
    try {
      const ExchangesWhileUnwinding guard{endpoints, set, GetParam()};
      throw std::runtime_error("on its way");
    } catch (const std::runtime_error&) {
      require(set.check(0));
    }
  });
}

}  // namespace
}  // namespace ropewalk::test
