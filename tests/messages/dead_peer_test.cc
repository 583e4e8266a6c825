// A rank is killed in the middle of a copy, by each mechanism; every survivor gets an error that
// names it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "os/pidfd.hpp"
#include "ropewalk/channel.hpp"
#include "ropewalk/memory.hpp"
#include "support/forked_ranks.hpp"

namespace ropewalk::test {
namespace {

constexpr int victim = 1;

enum Exit { good = 0, no_error = 1, wrong_error = 2, not_near = 3 };

struct Situation {
  const char* name;
  Mechanism force;
  std::size_t bytes;
  bool in_arena;
};

// Each rank sends to the next one and receives from the one before, again and again.
class Circle {
 public:
  Circle(Channel& channel, const Situation& situation)
      : channel_(channel), bytes_(situation.bytes), own_(2 * situation.bytes) {
    if (situation.in_arena) {
      arena_ = static_cast<std::byte*>(Arena::process().allocate(2 * bytes_, 4096));
    }
  }
  void turn() {
    std::byte* data = arena_ != nullptr ? arena_ : own_.data();
    const int size = channel_.size();
    const int next = (channel_.rank() + 1) % size;
    const int before = (channel_.rank() + size - 1) % size;
    channel_.send_receive(data, bytes_, next, 1, data + bytes_, bytes_, before, 1);
  }

 private:
  Channel& channel_;
  std::size_t bytes_;
  std::vector<std::byte> own_;
  std::byte* arena_ = nullptr;  // goes with the process
};

int outcome_of(const Error& error) {
  const bool names = std::string(error.what()).find("rank 1 ") != std::string::npos;
  if (error.code() == ErrorCode::peer_dead && names) return good;
  std::fprintf(stderr, "rank %d: %s\n", forked_rank(), error.what());
  return wrong_error;
}

int outcome_of(Circle& circle) {
  constexpr int turns = 1'000'000;  // far more than the victim makes
  try {
    for (int turn = 0; turn < turns; ++turn) circle.turn();
    return no_error;
  } catch (const Error& error) {
    return outcome_of(error);
  }
}

// The victim has offered its message, and is dead before the other asks for it.
int receive_from_the_dead() {
  Channel channel(Communicator::world());
  if (!channel.is_near(1 - channel.rank())) return not_near;
  std::vector<std::byte> data(12 << 10);
  if (forked_rank() == victim) {
    const auto sent = channel.start_send(data.data(), data.size(), 0, 1);
    kill(getpid(), SIGKILL);
  }
  usleep(300'000);
  try {
    channel.receive(data.data(), data.size(), victim, 1);
    return no_error;
  } catch (const Error& error) {
    return outcome_of(error);
  }
}

int live(const Situation& situation, useconds_t life) {
  const int threads = situation.force == Mechanism::threaded ? 2 : 1;
  Channel channel(Communicator::world(), {.force = situation.force, .threads = threads});
  if (!channel.is_near((channel.rank() + 1) % channel.size())) return not_near;
  Circle circle(channel, situation);
  if (forked_rank() == victim) {
    for (int turn = 0; turn < 3; ++turn) circle.turn();
    alarm(0);
    std::signal(SIGALRM, SIG_DFL);  // which ends the process
    ualarm(life, 0);
    while (true) circle.turn();
  }
  const int outcome = outcome_of(circle);
  // Who leaves is as dead as the victim: nobody does before all have seen what they see.
  meet(forked_ranks() - 1);
  return outcome;
}

const Situation situations[] = {
    {"cells", Mechanism::none, 8, false},
    {"slots", Mechanism::slots, 4000, false},
    {"by_the_receiver", Mechanism::receiver, 3 << 20, true},
    {"by_the_sender", Mechanism::sender, 3 << 20, true},
    {"by_both", Mechanism::both, 3 << 20, true},
    {"by_threads", Mechanism::threaded, 3 << 20, true},
    {"by_the_kernel", Mechanism::receiver, 3 << 20, false},
    {"pipeline", Mechanism::pipeline, 3 << 20, false},
    {"as_chosen", Mechanism::none, 3 << 20, false},
};

class DeadSender : public testing::TestWithParam<Situation> {};

TEST_P(DeadSender, IsNamedToEverySurvivor) {
  if (!os::open_pidfd(getpid())) GTEST_SKIP() << "no pidfd on this kernel";
  for (const int count : {2, 4}) {
    for (const useconds_t life : {5'000, 20'000}) {
      const std::vector<int> codes = run_forked(count, [&] { return live(GetParam(), life); });
      if (codes[0] == not_near) GTEST_SKIP() << "processes here cannot reach each other's memory";
      for (int rank = 0; rank < count; ++rank) {
        EXPECT_EQ(codes[static_cast<std::size_t>(rank)],
                  rank == victim ? -1 : static_cast<int>(good))
            << "rank " << rank << " of " << count << ", killed after " << life << " us";
      }
    }
  }
}

TEST(OfferOfTheDead, IsNoMessage) {
  const std::vector<int> codes = run_forked(2, receive_from_the_dead);
  if (codes[0] == not_near) GTEST_SKIP() << "processes here cannot reach each other's memory";
  EXPECT_EQ(codes[0], static_cast<int>(good));
}

INSTANTIATE_TEST_SUITE_P(In, DeadSender, testing::ValuesIn(situations),
                         [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace ropewalk::test
