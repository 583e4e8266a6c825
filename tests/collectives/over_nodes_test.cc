// Tests random collectives on ranks as threads that are dealt to pretended nodes: every layout,
// every path between nodes.
#include <gtest/gtest.h>

#include <stdlib.h>

#include <array>
#include <atomic>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "collectives/cases.hpp"
#include "ropewalk/memory.hpp"
#include "support/effort.hpp"
#include "support/thread_mpi.hpp"

namespace ropewalk::test {
namespace {

struct Spread {
  int ranks;
  const char* nodes;
  const char* threads = "1";  // a rank
  const char* lanes = "1";    // of these, that communicate
};

class OverNodes : public testing::TestWithParam<Spread> {
 protected:
  OverNodes() {
    setenv("ROPEWALK_NODES", GetParam().nodes, 1);
    setenv("ROPEWALK_MOVEMENTS", "nodes", 1);
    setenv("ROPEWALK_REDUCTION_THREADS", GetParam().threads, 1);
    setenv("ROPEWALK_LANES", GetParam().lanes, 1);
  }
  ~OverNodes() override {
    for (const char* name :
         {"ROPEWALK_NODES", "ROPEWALK_MOVEMENTS", "ROPEWALK_REDUCTION_THREADS", "ROPEWALK_LANES"}) {
      unsetenv(name);
    }
  }
};

TEST_P(OverNodes, RandomCollectivesGiveWhatLoopsGive) {
  const int ranks = GetParam().ranks;
  run_ranks(ranks, [&](int rank) {
    Collectives communicator(Communicator::world());
    ASSERT_TRUE(communicator.direct()) << communicator.reason();
    std::mt19937_64 random(3000 + ranks);
    for (int trial = 0; trial < test::cases(120); ++trial) {
      // Now and then there are several chunks of every algorithm. Nodes are combined one after the
      // other, so only exact sums equal those of the loops.
      const Case drawn =
          draw(random, {.bytes = trial % 12 == 0 ? 2400000U : 72000U, .only_integers = true});
      const std::string difference = run(communicator, drawn);
      ASSERT_EQ(difference, "") << "rank " << rank << ", trial " << trial << ": "
                                << text(drawn, communicator);
    }
  });
}

// What the first call refuses on one rank is told to the others, not waited for.
TEST_P(OverNodes, AFirstLargeReductionThatARankRefuses) {
  const int ranks = GetParam().ranks;
  for (const std::size_t count : {20000U, 300000U}) {
    std::vector<std::string> texts(static_cast<std::size_t>(ranks));
    run_ranks(ranks,
              [&](int rank) {
                const Buffer<float> send(count);
                Buffer<float> receive(count);
                Collectives communicator(Communicator::world());
                try {
                  communicator.allreduce(rank == 0 ? nullptr : send.data(), receive.data(), count,
                                         ElementType::float32, ReductionOp::sum);
                } catch (const Error& error) {
                  texts[static_cast<std::size_t>(rank)] = error.what();
                }
              },
              // Error notices are on their way for ever, so their communicators are kept.
              {.check_leaks = false, .frees_wait = false});
    for (const std::string& text : texts) EXPECT_NE(text.find("send: null"), text.npos) << text;
  }
}

// Each size makes other communicators first.
TEST_P(OverNodes, FirstLargeReductionsOfOtherSizes) {
  std::atomic<int> told{0};
  run_ranks(GetParam().ranks,
            [&](int rank) {
              const std::size_t count = rank == 0 ? 20000 : 300000;
              const Buffer<float> send(count);
              Buffer<float> receive(count);
              Collectives communicator(Communicator::world());
              try {
                communicator.allreduce(send.data(), receive.data(), count, ElementType::float32,
                                       ReductionOp::sum);
              } catch (const Error&) {
                ++told;
              }
            },
            {.check_leaks = false});
  EXPECT_EQ(told, GetParam().ranks);
}

// A broadcast's root needs nothing of the others, and learns of it in the next call.
TEST_P(OverNodes, AnExceptionThatTakesARankAwayIsToldInEveryLaterCall) {
  const int ranks = GetParam().ranks;
  const int leaver = ranks - 1;  // on another node than rank 0
  std::atomic<int> told{0};
  run_ranks(ranks,
            [&](int rank) {
              try {
                Collectives communicator(Communicator::world());
                communicator.barrier();
                if (rank == leaver) throw std::runtime_error("of the program");
                std::array<float, 4> data{};
                communicator.broadcast(data.data(), sizeof data, 0);
                for (int call = 0; call < 3; ++call) communicator.barrier();
              } catch (const Error&) {
                ++told;
              } catch (const std::runtime_error&) {
              }
            },
            {.check_leaks = false});
  EXPECT_EQ(told, ranks - 1);
}

TEST_P(OverNodes, ABadOptionOfOneRankIsToldToAll) {
  const int ranks = GetParam().ranks;
  std::vector<std::string> texts(static_cast<std::size_t>(ranks));
  run_ranks(ranks, [&](int rank) {
    try {
      const Collectives communicator(Communicator::world(), {.threads = rank == 1 ? -3 : 1});
    } catch (const Error& error) {
      texts[static_cast<std::size_t>(rank)] = error.what();
    }
  });
  for (const std::string& text : texts) {
    EXPECT_NE(text.find("threads: -3"), text.npos) << text;
    EXPECT_NE(text.find("rank 1"), text.npos) << text;
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, OverNodes,
                         testing::Values(Spread{3, "2,1"}, Spread{4, "2"}, Spread{4, "1"},
                                         Spread{2, "1", "3"}, Spread{3, "1", "3", "2"},
                                         Spread{5, "round:2"}, Spread{6, "2,1,3"},
                                         Spread{7, "round:3"}, Spread{8, "2"}),
                         [](const auto& one) {
                           std::string name = one.param.nodes;
                           for (char& letter : name) {
                             if (letter == ',' || letter == ':') letter = '_';
                           }
                           return std::to_string(one.param.ranks) + "_as_" + name + "_by_" +
                                  one.param.threads + "_" + one.param.lanes;
                         });

}  // namespace
}  // namespace ropewalk::test
