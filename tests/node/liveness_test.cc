// Ranks die, are stopped, or are cut off; those that wait learn the first and the last, and nothing
// else. Ranks are processes; each is a node of its own (ROPEWALK_NODES) but where a test says so.
#include "node/liveness.hpp"

#include <gtest/gtest.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "os/clock.hpp"
#include "os/pidfd.hpp"
#include "ropewalk/error.hpp"
#include "support/forked_ranks.hpp"

namespace ropewalk::test {
namespace {

constexpr int victim = 1;
enum Exit { good = 0, no_error = 1, wrong_error = 2, not_made = 3, skipped = 4 };

std::unique_ptr<node::Liveness> make() {
  std::string reason;
  auto made = node::Liveness::create(mpi::comm_world(), reason);
  if (made == nullptr) std::fprintf(stderr, "rank %d: %s\n", forked_rank(), reason.c_str());
  return made;
}

bool names(const Error& error, const std::string& text) {
  if (error.code() == ErrorCode::peer_dead &&
      std::string(error.what()).find(text) != std::string::npos) {
    return true;
  }
  std::fprintf(stderr, "rank %d: %s\n", forked_rank(), error.what());
  return false;
}

// Looks, as a wait does, until it throws (the alarm ends a test in which it never does).
int wait_for_error(node::Liveness& liveness, const std::string& text) {
  try {
    for (;; usleep(1000)) liveness.look();
  } catch (const Error& error) {
    if (!names(error, text)) return wrong_error;
  }
  try {
    liveness.require_whole();
    return no_error;
  } catch (const Error& error) {
    return names(error, text) ? good : wrong_error;
  }
}

int look_for(node::Liveness& liveness, std::int64_t ns) {
  try {
    for (const std::int64_t end = os::steady_ns() + ns; os::steady_ns() < end; usleep(1000)) {
      liveness.look();
    }
    return good;
  } catch (const Error& error) {
    std::fprintf(stderr, "rank %d: %s\n", forked_rank(), error.what());
    return wrong_error;
  }
}

void expect_good(const std::vector<int>& codes, int dead = -1) {
  for (std::size_t rank = 0; rank < codes.size(); ++rank) {
    EXPECT_EQ(codes[rank], static_cast<int>(rank) == dead ? -1 : static_cast<int>(good))
        << "rank " << rank << " of " << codes.size();
  }
}

// Who leaves is as dead as the victim: nobody does before all have seen what they see.
int leave(int code) {
  meet(forked_ranks() - 1);
  return code;
}

int live_with_a_victim() {
  const auto liveness = make();
  if (liveness == nullptr) return not_made;
  if (forked_rank() == victim) raise(SIGKILL);
  return leave(wait_for_error(*liveness, "rank 1 on node "));
}

class Liveness : public testing::Test {
 protected:
  Liveness() { setenv("ROPEWALK_NODES", "1", 1); }
  ~Liveness() override {
    unsetenv("ROPEWALK_NODES");
    unsetenv("ROPEWALK_TIMEOUT");
  }
};

TEST_F(Liveness, NamesTheDeadToAll) {
  for (const int ranks : {2, 5}) expect_good(run_forked(ranks, live_with_a_victim), victim);
}

TEST_F(Liveness, NamesTheDeadOnOneNode) {
  if (!os::open_pidfd(getpid())) GTEST_SKIP() << "no pidfd on this kernel";
  unsetenv("ROPEWALK_NODES");
  expect_good(run_forked(3, live_with_a_victim), victim);
}

// There are more processes than are all connected to each other, so most learn it from others.
TEST_F(Liveness, PassesItOn) {
  expect_good(run_forked(most_forked_ranks, live_with_a_victim), victim);
}

// Killed before anybody waits, and its port is free again.
TEST_F(Liveness, FindsWhoDiedEarlier) {
  expect_good(run_forked(3,
                         [] {
                           const auto liveness = make();
                           if (liveness == nullptr) return static_cast<int>(not_made);
                           if (forked_rank() == victim) raise(SIGKILL);
                           usleep(600000);
                           return leave(wait_for_error(*liveness, "rank 1 on node "));
                         }),
              victim);
}

// Ranks that do not wait, stopped ones too, are alive, however long the others wait.
TEST_F(Liveness, LetsRanksComputeAndBeStopped) {
  setenv("ROPEWALK_TIMEOUT", "1", 1);
  constexpr std::int64_t several_timeouts = 5'000'000'000;
  expect_good(run_forked(4, [] {
    const auto liveness = make();
    if (liveness == nullptr) return static_cast<int>(not_made);
    int code = good;
    if (forked_rank() == 1) raise(SIGSTOP);
    if (forked_rank() == 2) usleep(several_timeouts / 1000);
    if (forked_rank() == 0 || forked_rank() == 3) code = look_for(*liveness, several_timeouts);
    if (forked_rank() == 0) kill(process_of(1), SIGCONT);
    meet(4);
    return code;
  }));
}

// A child holds no connection of its parent's open.
TEST_F(Liveness, SeesADeathBehindAChild) {
  expect_good(run_forked(2,
                         [] {
                           const auto liveness = make();
                           if (liveness == nullptr) return static_cast<int>(not_made);
                           if (forked_rank() == victim) {
                             if (fork() == 0) {
                               for (int left = 20; getppid() == process_of(victim) || left > 0;
                                    --left) {
                                 usleep(100000);
                               }
                               _exit(0);
                             }
                             raise(SIGKILL);
                           }
                           return leave(wait_for_error(*liveness, "rank 1 on node "));
                         }),
              victim);
}

// Sends a frame of a stranger to this process; true if the connection is closed without a word.
bool hangs_up_on(std::uint16_t port, std::uint32_t kind) {
  const os::Descriptor socket = os::start_connection(os::loopback_address, port);
  node::Frame frame;
  frame.kind = kind;
  frame.sender = node::random_id();
  frame.subject = node::random_id();
  while (send(socket.get(), &frame, sizeof frame, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) usleep(1000);
  char byte = 0;
  ssize_t got = -1;
  while ((got = recv(socket.get(), &byte, 1, 0)) < 0 && errno == EAGAIN) usleep(1000);
  return got <= 0;
}

// Whoever connects without knowing the job's numbers is not heard.
TEST_F(Liveness, IgnoresStrangers) {
  expect_good(run_forked(2, [] {
    const auto liveness = make();
    std::string reason;
    node::FailureDetector* detector = node::FailureDetector::of_process(60, reason);
    if (liveness == nullptr || detector == nullptr) return static_cast<int>(not_made);
    int code = good;
    for (const std::uint32_t kind : {node::Frame::ended, node::Frame::greeting}) {
      if (!hangs_up_on(detector->own().port, kind)) code = wrong_error;
    }
    if (look_for(*liveness, 100'000'000) != good) code = wrong_error;
    meet(2);
    return code;
  }));
}

TEST_F(Liveness, IsOffWhereOneRankSaysSo) {
  expect_good(run_forked(2, [] {
    if (forked_rank() == 1) setenv("ROPEWALK_TIMEOUT", "off", 1);
    std::string reason;
    const auto none = node::Liveness::create(mpi::comm_world(), reason);
    return static_cast<int>(
        none == nullptr && reason == "ROPEWALK_TIMEOUT=off on rank 1" ? good : wrong_error);
  }));
}

TEST_F(Liveness, RefusesAMalformedTimeOutOnAllRanks) {
  for (const char* text : {"0", "-1", "10s", "1e9", "off!"}) {
    setenv("ROPEWALK_TIMEOUT", text, 1);
    EXPECT_THROW(node::liveness_timeout_s(), Error) << text;
  }
  unsetenv("ROPEWALK_TIMEOUT");
  expect_good(run_forked(2, [] {
    if (forked_rank() == 1) setenv("ROPEWALK_TIMEOUT", "soon", 1);
    try {
      std::string reason;
      const auto none = node::Liveness::create(mpi::comm_world(), reason);
      return static_cast<int>(no_error);
    } catch (const Error& error) {
      return static_cast<int>(error.code() == ErrorCode::argument ? good : wrong_error);
    }
  }));
}

// ---- a network of our own: nothing but a loopback interface, which is the link that is cut

bool switch_loopback(bool on) {
  const os::Descriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  if (ioctl(socket.get(), SIOCGIFFLAGS, &request) != 0) return false;
  request.ifr_flags =
      static_cast<short>(on ? request.ifr_flags | IFF_UP : request.ifr_flags & ~IFF_UP);
  return ioctl(socket.get(), SIOCSIFFLAGS, &request) == 0;
}

// In a child, so that this process keeps its network.
std::vector<int> run_in_own_network(int ranks, const std::function<int()>& live) {
  std::array<int, 2> results{};
  if (pipe(results.data()) != 0) return {};
  const pid_t child = fork();
  if (child == 0) {
    const bool alone = unshare(CLONE_NEWNET) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0;
    if (!alone || !switch_loopback(true)) _exit(skipped);
    for (const int code : run_forked(ranks, live)) {
      if (write(results[1], &code, sizeof code) != sizeof code) _exit(1);
    }
    _exit(0);
  }
  close(results[1]);
  std::vector<int> codes;
  for (int code = 0; read(results[0], &code, sizeof code) == sizeof code;) codes.push_back(code);
  close(results[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == skipped) return {skipped};
  return codes;
}

TEST_F(Liveness, NamesWhoIsCutOff) {
  setenv("ROPEWALK_TIMEOUT", "2", 1);
  const auto codes = run_in_own_network(3, [] {
    const auto liveness = make();
    if (liveness == nullptr) return static_cast<int>(not_made);
    meet(3);
    if (forked_rank() == 0) switch_loopback(false);
    const int code = wait_for_error(*liveness, "no answer for 2 s");
    meet(6);
    return code;
  });
  if (codes == std::vector<int>{skipped}) GTEST_SKIP() << "no network namespaces here";
  ASSERT_EQ(codes.size(), 3U);
  expect_good(codes);
}

// A link that comes back in time, while nobody or somebody waits, is no reason for anything.
TEST_F(Liveness, ForgivesAConnectionThatComesBack) {
  const auto codes = run_in_own_network(2, [] {
    const auto liveness = make();
    if (liveness == nullptr) return static_cast<int>(not_made);
    meet(2);
    if (forked_rank() == 0) {
      switch_loopback(false);
      usleep(1'000'000);
      switch_loopback(true);
    }
    const int code = look_for(*liveness, 1'500'000'000);
    meet(4);
    return code;
  });
  if (codes == std::vector<int>{skipped}) GTEST_SKIP() << "no network namespaces here";
  ASSERT_EQ(codes.size(), 2U);
  expect_good(codes);
}

}  // namespace
}  // namespace ropewalk::test
