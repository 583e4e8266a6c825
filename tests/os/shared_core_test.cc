#include "os/shared_core.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <thread>

#include "os/waiting.hpp"

namespace ropewalk::os {
namespace {

constexpr std::int64_t ms = 1'000'000;

TEST(SharedCore, IsSharedForAWhileAfterALongYield) {
  SharedCore core;
  EXPECT_FALSE(core.is_shared(1000 * ms));
  core.yielded(1000 * ms, 1000 * ms + SharedCore::least_slice_ns - 1);
  EXPECT_FALSE(core.is_shared(1001 * ms));
  core.yielded(1000 * ms, 1003 * ms);
  EXPECT_TRUE(core.is_shared(1003 * ms + SharedCore::least_ns - 1));
  EXPECT_FALSE(core.is_shared(1003 * ms + SharedCore::least_ns));
}

TEST(SharedCore, LastsLongerEachTimeThatItIsFoundAgain) {
  SharedCore core;
  std::int64_t now = 1000 * ms;
  std::int64_t lasts = SharedCore::least_ns;
  for (int time = 0; time < 10; ++time) {
    core.yielded(now, now + 3 * ms);
    now += 3 * ms + lasts;
    EXPECT_TRUE(core.is_shared(now - 1)) << time;
    EXPECT_FALSE(core.is_shared(now)) << time;
    lasts = std::min(2 * lasts, SharedCore::most_ns);
  }
  EXPECT_EQ(lasts, SharedCore::most_ns);
}

TEST(SharedCore, BeginsAnewWhereItWasFreeForLong) {
  SharedCore core;
  core.yielded(1000 * ms, 1003 * ms);
  core.yielded(1060 * ms, 1063 * ms);
  EXPECT_TRUE(core.is_shared(1062 * ms + 2 * SharedCore::least_ns));
  core.yielded(1400 * ms, 1403 * ms);
  EXPECT_FALSE(core.is_shared(1403 * ms + SharedCore::least_ns));
}

// In a thread of its own, whose core it is that counts as shared.
int sleeps_where_the_core_is_shared(const WaitPolicy& policy, bool told_to_stay) {
  int sleeps = 0;
  std::thread([&] {
    const std::int64_t now = steady_ns();
    SharedCore::of_this_thread().yielded(now - 3000 * ms, now + 1000 * ms);
    Waiting wait = Waiting::after_spins(policy);
    if (told_to_stay) wait.stay_awake();
    for (unsigned look = 0; look < policy.looks_per_yield; ++look) {
      wait.pause([&](std::int64_t) { ++sleeps; });
    }
  }).join();
  return sleeps;
}

TEST(SharedCore, WaitsThatLeaveItSleepInsteadOfYielding) {
  static_assert(wait_for_ranks.leaves_shared_core);
  EXPECT_EQ(sleeps_where_the_core_is_shared(wait_for_ranks, false), 1);
  EXPECT_EQ(sleeps_where_the_core_is_shared(wait_for_ranks_crowded, false), 0);
  constexpr WaitPolicy at_once{
      .spins = 0, .awake_ns = stays_awake, .longest_nap_ns = ms, .leaves_shared_core = true};
  EXPECT_EQ(sleeps_where_the_core_is_shared(at_once, false), 1);
  EXPECT_EQ(sleeps_where_the_core_is_shared(at_once, true), 0);
}

}  // namespace
}  // namespace ropewalk::os
