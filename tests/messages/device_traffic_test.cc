// Tests random traffic of which half of the buffers are memory of devices, of the fake driver, on
// ranks as threads: on one node and on several.
#include <gtest/gtest.h>

#include <cstdlib>

#include "messages/traffic.hpp"
#include "support/device.hpp"
#include "support/thread_mpi.hpp"
#include "tuning/profile.hpp"

namespace ropewalk {
namespace {

class DeviceTraffic : public testing::TestWithParam<int> {
 protected:
  static void run(std::uint64_t seed, const ChannelOptions& options = {}) {
    test::run_ranks(GetParam(), [&](int rank) {
      test::use_device(rank % 2);
      const tuning::Trial small_pieces("channel.device_piece_bytes = 8K");
      Channel channel(Communicator::world(), options);
      EXPECT_EQ(test::random_traffic(channel, {.seed = seed, .rounds = 5, .devices = true}), "");
    });
    EXPECT_EQ(test::left_in_driver(), 0);
  }
};

TEST_P(DeviceTraffic, KeepsTheRulesOfMatching) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) run(seed);
}

TEST_P(DeviceTraffic, KeepsThemInPieces) { run(4, {.force = Mechanism::pipeline}); }

TEST_P(DeviceTraffic, KeepsThemOverNodes) {
  ::setenv("ROPEWALK_NODES", "2,1", 1);
  run(5);
  ::unsetenv("ROPEWALK_NODES");
}

INSTANTIATE_TEST_SUITE_P(Channel, DeviceTraffic, testing::Values(1, 2, 3, 5, 8),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace ropewalk
