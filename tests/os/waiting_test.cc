#include "os/waiting.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <thread>
#include <vector>

#include "os/epoch.hpp"

namespace ropewalk::os {
namespace {

constexpr WaitPolicy short_wait{
    .spins = 3, .looks_awake = 4, .awake_ns = 0, .longest_nap_ns = 500'000};
constexpr WaitPolicy woken{
    .spins = 0, .awake_ns = 0, .longest_nap_ns = 7'000'000, .is_woken = true, .polls = false};

// The lengths of the sleeps in so many pauses; none of them sleeps.
std::vector<std::int64_t> sleeps_of(Waiting& wait, int pauses) {
  std::vector<std::int64_t> sleeps;
  for (int i = 0; i < pauses; ++i) wait.pause([&](std::int64_t ns) { sleeps.push_back(ns); });
  return sleeps;
}

TEST(Waiting, SleepsOnceItHasSpunAndYielded) {
  Waiting wait(short_wait);
  EXPECT_EQ(sleeps_of(wait, 3 + 4).size(), 0U);
  EXPECT_EQ(sleeps_of(wait, 5).size(), 5U);
}

TEST(Waiting, BeginsAnewWhenSomethingHasCome) {
  Waiting wait(short_wait);
  sleeps_of(wait, 100);
  wait.restart();
  EXPECT_FALSE(wait.look_due());
  EXPECT_EQ(sleeps_of(wait, 3 + 4).size(), 0U);
  EXPECT_EQ(sleeps_of(wait, 1).size(), 1U);
}

TEST(Waiting, BehindTheSpinsOfItsCallerItYieldsAtOnce) {
  Waiting wait = Waiting::after_spins(short_wait);
  EXPECT_FALSE(wait.spins());
  EXPECT_EQ(sleeps_of(wait, 4).size(), 0U);
  EXPECT_EQ(sleeps_of(wait, 1).size(), 1U);
}

TEST(Waiting, StaysAwakeForTheTimeOfItsRow) {
  Waiting wait(short_wait, 10'000'000'000);
  EXPECT_EQ(sleeps_of(wait, 1000).size(), 0U);
}

TEST(Waiting, StaysAwakeForOneMoreLookWhereItIsTold) {
  Waiting wait(short_wait);
  sleeps_of(wait, 10);
  wait.stay_awake();
  EXPECT_EQ(sleeps_of(wait, 1).size(), 0U);
  EXPECT_EQ(sleeps_of(wait, 1).size(), 1U);
}

TEST(Waiting, NapsGrowWithTheTimeThatNothingHasCome) {
  const auto next_nap = [](Waiting& wait) {
    for (;;) {  // a poll after a long time may keep the wait awake for a moment
      wait.poll([] {});
      const std::vector<std::int64_t> sleeps = sleeps_of(wait, 1);
      if (!sleeps.empty()) return sleeps.front();
    }
  };
  // On a busy machine a wait may lose its core until its first nap is the longest.
  std::int64_t first = short_wait.longest_nap_ns;
  for (int tries = 0; tries < 50 && first == short_wait.longest_nap_ns; ++tries) {
    Waiting fresh(short_wait);
    first = next_nap(fresh);
  }
  EXPECT_GE(first, IdleClock::shortest_nap_ns);
  EXPECT_LT(first, short_wait.longest_nap_ns);
  // There a poll that loses its core for long counts as work, too, and the time begins anew.
  Waiting wait(short_wait);
  std::int64_t nap = 0;
  for (int tries = 0; tries < 50 && nap != short_wait.longest_nap_ns; ++tries) {
    usleep(40'000);  // of which a nap is a part of 1/32
    nap = next_nap(wait);
  }
  EXPECT_EQ(nap, short_wait.longest_nap_ns);
}

TEST(Waiting, WhoIsWokenSleepsForTheLongestNapAtOnce) {
  Waiting wait(woken);
  EXPECT_EQ(sleeps_of(wait, 1), std::vector<std::int64_t>{7'000'000});
}

TEST(Waiting, PeersAreLookedAtEveryFiveMilliseconds) {
  for (const WaitPolicy* policy : {&short_wait, &wait_for_nodes_crowded}) {
    Waiting wait(*policy);
    const auto look = [&] {
      wait.poll([] {});
      sleeps_of(wait, 8);  // a wait that does not poll reads the clock at every eighth
    };
    look();
    usleep(6'000);
    look();
    EXPECT_TRUE(wait.check_due());
    EXPECT_FALSE(wait.check_due());
  }
}

TEST(Waiting, LooksBesideAtEvery64thLookAndBetweenSleeps) {
  Waiting wait(wait_for_nodes);
  int due = 0;
  for (int look = 0; look < 640; ++look) {
    due += wait.look_due() ? 1 : 0;
    wait.pause();
  }
  EXPECT_EQ(due, 7);  // number 255, 319, ...: the first 200 are spins
  Waiting asleep(woken);
  sleeps_of(asleep, 1);
  for (int look = 0; look < 5; ++look, sleeps_of(asleep, 1)) EXPECT_TRUE(asleep.look_due());
}

TEST(Waiting, APollMayThrow) {
  Waiting wait = Waiting::after_spins(short_wait);
  EXPECT_THROW(wait.poll([] { throw std::runtime_error("lost"); }), std::runtime_error);
  EXPECT_EQ(wait.poll([] { return 7; }), 7);
}

TEST(Epoch, WakesWhoSleeps) {
  Epoch epoch(wait_asleep);
  std::atomic<int> seen{0};
  std::thread waiter([&] {
    for (std::uint32_t number = 0; number < 20; ++number) {
      epoch.wait_beyond(number);
      seen = static_cast<int>(number) + 1;
    }
  });
  for (int number = 0; number < 20; ++number) {
    while (seen != number) sched_yield();
    epoch.advance();
  }
  waiter.join();
  EXPECT_EQ(seen, 20);
}

}  // namespace
}  // namespace ropewalk::os
