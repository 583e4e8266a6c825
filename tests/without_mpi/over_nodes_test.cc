// Random collectives and messages of ranks on several pretended nodes that have no MPI: everything
// between nodes goes over sockets.
#include <gtest/gtest.h>

#include <sched.h>
#include <stdlib.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "collectives/cases.hpp"
#include "ropewalk/channel.hpp"
#include "ropewalk/collectives.hpp"
#include "support/effort.hpp"
#include "without_mpi/group_test.hpp"

namespace ropewalk::test {
namespace {

struct Spread {
  int ranks;
  const char* nodes;
  const char* threads = "1";  // a rank
  const char* lanes = "1";    // of these, that communicate
  const char* allreduce = "auto";
};

class WithoutMpiOverNodes : public testing::TestWithParam<Spread> {
 protected:
  WithoutMpiOverNodes() {
    setenv("ROPEWALK_NODES", GetParam().nodes, 1);
    setenv("ROPEWALK_REDUCTION_THREADS", GetParam().threads, 1);
    setenv("ROPEWALK_LANES", GetParam().lanes, 1);
    setenv("ROPEWALK_ALLREDUCE", GetParam().allreduce, 1);
  }
  ~WithoutMpiOverNodes() override {
    for (const char* name :
         {"ROPEWALK_NODES", "ROPEWALK_REDUCTION_THREADS", "ROPEWALK_LANES", "ROPEWALK_ALLREDUCE"}) {
      unsetenv(name);
    }
  }
  template <class Body>
  void run_ranks(Body body) {
    run_group(std::make_shared<Shelf>(), GetParam().ranks, body);
  }

 private:
  LibraryRestored restored_;
};

TEST_P(WithoutMpiOverNodes, RandomCollectivesGiveWhatLoopsGive) {
  run_ranks([&](Communicator on, int rank) {
    Collectives communicator(on);
    ASSERT_TRUE(communicator.direct()) << communicator.reason();
    std::mt19937_64 random(3000 + static_cast<unsigned>(GetParam().ranks));
    for (int trial = 0; trial < test::cases(150); ++trial) {
      // Now and then there are several chunks of every algorithm. Nodes are combined one after the
      // other, so only exact sums equal those of the loops.
      const Case drawn =
          draw(random, {.bytes = trial % 12 == 0 ? 2400000U : 72000U, .only_integers = true});
      const std::string difference = test::run(communicator, drawn);
      ASSERT_EQ(difference, "") << "rank " << rank << ", trial " << trial << ": "
                                << text(drawn, communicator);
    }
  });
}

// Every rank sends to every other in an order of its own; sources are found by wildcards, too.
TEST_P(WithoutMpiOverNodes, ChannelsCarryRandomMessages) {
  const int ranks = GetParam().ranks;
  run_ranks([&](Communicator on, int rank) {
    Channel channel(on);
    std::mt19937_64 random(7U + static_cast<unsigned>(rank));
    constexpr std::size_t longest = 400000;
    for (int round = 0; round < test::cases(40); ++round) {
      const auto length = [&](int from) {  // all ranks know it
        std::mt19937_64 drawn(static_cast<unsigned>(1000 * round + from));
        return drawn() % 4 == 0 ? drawn() % longest : drawn() % 900;
      };
      std::vector<std::vector<unsigned char>> out(static_cast<std::size_t>(ranks));
      std::vector<std::vector<unsigned char>> in(static_cast<std::size_t>(ranks));
      std::vector<MessageRequest> requests;
      std::vector<int> order(static_cast<std::size_t>(ranks));
      std::iota(order.begin(), order.end(), 0);
      std::shuffle(order.begin(), order.end(), random);
      for (const int peer : order) {
        if (peer == rank) continue;
        const auto at = static_cast<std::size_t>(peer);
        out[at].assign(length(rank), static_cast<unsigned char>(rank + 16 * peer + round));
        requests.push_back(channel.start_send(out[at].data(), out[at].size(), peer, round));
      }
      for (int k = 1; k < ranks; ++k) {
        std::vector<unsigned char> data(longest);
        const MessageStatus found = channel.receive(data.data(), data.size(), any_source, round);
        data.resize(found.bytes);
        in[static_cast<std::size_t>(found.source)] = std::move(data);
      }
      for (MessageRequest& each : requests) each.wait();
      for (int peer = 0; peer < ranks; ++peer) {
        if (peer == rank) continue;
        const std::vector<unsigned char> wanted(
            length(peer), static_cast<unsigned char>(peer + 16 * rank + round));
        ASSERT_EQ(in[static_cast<std::size_t>(peer)], wanted) << "round " << round;
      }
    }
  });
}

// What one rank refuses is told to the others, and they go on.
TEST_P(WithoutMpiOverNodes, ARefusedCallIsToldToAll) {
  std::atomic<int> told{0};
  run_ranks([&](Communicator on, int rank) {
    Collectives communicator(on);
    std::array<float, 4> data{};
    try {
      communicator.allreduce(rank == 0 ? nullptr : data.data(), data.data(), data.size(),
                             ElementType::float32, ReductionOp::sum);
      communicator.barrier();
    } catch (const Error& error) {
      if (std::string(error.what()).find("send: null") != std::string::npos) ++told;
    }
  });
  EXPECT_EQ(told, GetParam().ranks);
}

TEST_P(WithoutMpiOverNodes, AnExceptionThatTakesARankAwayIsToldInEveryLaterCall) {
  const int ranks = GetParam().ranks;
  std::atomic<int> told{0};
  run_ranks([&](Communicator on, int rank) {
    try {
      Collectives communicator(on);
      communicator.barrier();
      if (rank == ranks - 1) throw std::runtime_error("of the program");
      for (int call = 0; call < 3; ++call) communicator.barrier();
    } catch (const Error&) {
      ++told;
    } catch (const std::runtime_error&) {
    }
  });
  EXPECT_EQ(told, ranks - 1);
}

TEST_P(WithoutMpiOverNodes, ALateRankIsAnErrorAfterTheTimeOut) {
  const int ranks = GetParam().ranks;
  constexpr int timeout_s = sanitized ? 5 : 2;  // the first barrier takes less
  std::atomic<int> told{0};
  run_ranks([&](Communicator on, int rank) {
    Collectives communicator(on, {.timeout_s = timeout_s});
    communicator.barrier();
    if (rank == ranks - 1) {
      while (told < ranks - 1) sched_yield();
      return;
    }
    try {
      communicator.barrier();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::peer_dead);
      const std::string text = error.what();
      EXPECT_NE(text.find("within the timeout of"), text.npos) << text;
      ++told;
    }
  });
  EXPECT_EQ(told, ranks - 1);
}

INSTANTIATE_TEST_SUITE_P(Layouts, WithoutMpiOverNodes,
                         testing::Values(Spread{2, "1"}, Spread{3, "2,1"}, Spread{4, "2"},
                                         Spread{4, "1"}, Spread{2, "1", "3"},
                                         Spread{3, "1", "3", "2"}, Spread{5, "round:2"},
                                         Spread{6, "2,1,3"}, Spread{3, "1", "1", "1", "halving"},
                                         Spread{4, "2", "1", "1", "ring"},
                                         Spread{3, "2,1", "1", "1", "mpi"}),
                         [](const auto& one) {
                           std::string name = one.param.nodes;
                           for (char& letter : name) {
                             if (letter == ',' || letter == ':') letter = '_';
                           }
                           return std::to_string(one.param.ranks) + "_as_" + name + "_by_" +
                                  one.param.threads + "_" + one.param.lanes + "_" +
                                  one.param.allreduce;
                         });

}  // namespace
}  // namespace ropewalk::test
