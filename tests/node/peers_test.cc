// Tests other processes: whether their memory can be read, and whether their death is noticed.
#include "node/peers.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace ropewalk::node {
namespace {

// This process does nothing until it is killed.
class Sleeper {
 public:
  Sleeper() : process_(fork()) {
    while (process_ == 0) pause();
  }
  ~Sleeper() { end(); }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;
  pid_t process() const { return process_; }
  void kill() const { ::kill(process_, SIGKILL); }
  void end() {
    if (process_ < 0) return;
    kill();
    waitpid(process_, nullptr, 0);
    process_ = -1;
  }

 private:
  pid_t process_;
};

TEST(Peers, ADeadProcessIsNoticedEvenAsAZombie) {
  Sleeper sleeper;
  Peer peer;
  peer.process = sleeper.process();
  peer.life = os::ProcessWatch(sleeper.process());
  if (!peer.life) GTEST_SKIP() << "no pidfd on this kernel";
  EXPECT_FALSE(is_dead(peer));
  sleeper.kill();
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(sleeper.process()), &info, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(is_dead(peer));
}

TEST(Peers, ThisProcessItselfIsNeverDead) {
  Peer peer;
  peer.self = true;
  EXPECT_FALSE(is_dead(peer));
}

TEST(Peers, ReadingByCmaComparesWhatIsThere) {
  const std::uint64_t probe = 0x1234567890abcdef;
  RankFacts facts{};
  facts.process = getpid();
  facts.probe_address = reinterpret_cast<std::uintptr_t>(&probe);
  facts.probe_value = probe;
  EXPECT_TRUE(can_read(std::span(&facts, 1)));
  facts.probe_value = probe + 1;
  EXPECT_FALSE(can_read(std::span(&facts, 1)));
}

TEST(Peers, CoresAreCountedOnceForAllRanks) {
  std::vector<RankFacts> facts(3);
  facts[0].cpus[0] = 0b0011;
  facts[1].cpus[0] = 0b0110;
  facts[2].cpus[1] = 0b1;
  EXPECT_EQ(cores_of(facts), 4);
  facts[1].quota_cores = 2;
  EXPECT_EQ(cores_of(facts), 2);
}

}  // namespace
}  // namespace ropewalk::node
