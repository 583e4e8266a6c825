// Tests random traffic on ranks as threads, by every mechanism, on one node and on several.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <tuple>

#include "messages/traffic.hpp"
#include "support/effort.hpp"
#include "support/thread_mpi.hpp"

namespace ropewalk {
namespace {

class RandomTraffic : public testing::TestWithParam<std::tuple<Mechanism, int>> {};

TEST_P(RandomTraffic, KeepsTheRulesOfMatching) {
  const auto [force, ranks] = GetParam();
  for (int seed = 1; seed <= test::cases(3); ++seed) {
    test::run_ranks(ranks, [&, force = force](int) {
      Channel channel(Communicator::world(), {.force = force});
      EXPECT_EQ(
          test::random_traffic(channel, {.seed = static_cast<std::uint64_t>(seed), .rounds = 6}),
          "");
    });
  }
}

// Each rank has another number of threads; more than the cores, too.
TEST_P(RandomTraffic, KeepsThemWithSeveralThreads) {
  const auto [force, ranks] = GetParam();
  test::run_ranks(ranks, [&, force = force](int rank) {
    Channel channel(Communicator::world(), {.force = force, .threads = 1 + (rank + 1) % 3});
    EXPECT_EQ(test::random_traffic(channel, {.seed = 5, .rounds = 6}), "");
  });
}

TEST_P(RandomTraffic, KeepsThemOverNodes) {
  const auto [force, ranks] = GetParam();
  ::setenv("ROPEWALK_NODES", "2,1", 1);
  test::run_ranks(ranks, [&, force = force](int) {
    Channel channel(Communicator::world(), {.force = force});
    EXPECT_EQ(test::random_traffic(channel, {.seed = 77, .rounds = 6}), "");
  });
  ::unsetenv("ROPEWALK_NODES");
}

INSTANTIATE_TEST_SUITE_P(Channel, RandomTraffic,
                         testing::Combine(testing::Values(Mechanism::none, Mechanism::receiver,
                                                          Mechanism::sender, Mechanism::both,
                                                          Mechanism::pipeline, Mechanism::threaded),
                                          testing::Values(1, 2, 3, 5)),
                         [](const auto& each) {
                           return std::string(name(std::get<0>(each.param))) + "On" +
                                  std::to_string(std::get<1>(each.param));
                         });

}  // namespace
}  // namespace ropewalk
