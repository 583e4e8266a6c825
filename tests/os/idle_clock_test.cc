#include "os/idle_clock.hpp"

#include <gtest/gtest.h>

namespace ropewalk::os {
namespace {

constexpr std::int64_t longest_nap_ns = 500'000;
constexpr std::int64_t idle_poll_ns = 50;

// This thread polls, with a clock of its own.
class Thread {
 public:
  // Makes a poll, and lets some time pass between polls.
  void poll(std::int64_t took_ns = idle_poll_ns) {
    clock_.poll_begins(now_);
    clock_.poll_ends(now_ += took_ns);
    now_ += clock_.awake() ? 100 : clock_.nap_ns();
    naps_ += clock_.awake() ? 0 : 1;
  }
  void poll_for(std::int64_t ns) {
    for (const std::int64_t until = now_ + ns; now_ < until;) poll();
  }
  bool awake() const { return clock_.awake(); }
  std::int64_t nap_ns() const { return clock_.nap_ns(); }
  int naps() const { return naps_; }

 private:
  std::int64_t now_ = 1'000'000;
  int naps_ = 0;
  IdleClock clock_{longest_nap_ns, IdleClock::awake_at_first_ns, now_};
};

TEST(IdleClock, StaysAwakeAtFirst) {
  Thread thread;
  thread.poll_for(IdleClock::awake_at_first_ns - 1000);
  EXPECT_TRUE(thread.awake());
  EXPECT_EQ(thread.naps(), 0);
}

TEST(IdleClock, SleepsAPartOfTheQuietAndNeverLongerThanAllowed) {
  Thread thread;
  thread.poll_for(IdleClock::awake_at_first_ns + 1'000'000);
  EXPECT_GE(thread.nap_ns(), IdleClock::shortest_nap_ns);
  EXPECT_LT(thread.nap_ns(), longest_nap_ns);
  thread.poll_for(100'000'000);
  EXPECT_EQ(thread.nap_ns(), longest_nap_ns);
}

TEST(IdleClock, AStreamOfSmallWorkKeepsItAwake) {
  Thread thread;
  thread.poll_for(100'000'000);
  const int before = thread.naps();
  // A fetch-and-op each microsecond: one poll in seven finds it.
  for (int i = 0; i < 100'000; ++i) thread.poll(i % 7 == 0 ? 300 : idle_poll_ns);
  EXPECT_LE(thread.naps() - before, 100);
}

TEST(IdleClock, AMessageFoundAfterASleepKeepsItAwake) {
  Thread thread;
  thread.poll_for(100'000'000);
  while (thread.awake()) thread.poll();
  thread.poll(19'000);  // the caches are cold, and the message is long
  const int before = thread.naps();
  thread.poll_for(150'000);
  EXPECT_EQ(thread.naps(), before);
}

TEST(IdleClock, DisturbancesDoNot) {
  Thread thread;
  thread.poll_for(50'000'000);
  const int before = thread.naps();
  // A timer interrupt of 3 us falls into one poll of a thousand.
  for (int i = 0; i < 20'000; ++i) thread.poll(i % 1000 == 999 ? 3000 : idle_poll_ns);
  EXPECT_GT(thread.naps() - before, 200);
}

TEST(IdleClock, LearnsHowLongAPollTakesThatFindsNothing) {
  Thread thread;
  thread.poll_for(20'000'000);
  const int before = thread.naps();
  for (int i = 0; i < 50'000; ++i) thread.poll(300);  // another network is asked, too, from now on
  EXPECT_GT(thread.naps() - before, 200);
}

}  // namespace
}  // namespace ropewalk::os
