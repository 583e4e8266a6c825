// A child of fork ends its copy of a channel: the ranks do not notice.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <vector>

#include "os/pidfd.hpp"
#include "ropewalk/channel.hpp"
#include "ropewalk/memory.hpp"
#include "support/forked_ranks.hpp"

namespace ropewalk::test {
namespace {

enum Exit { good = 0, lost = 1, not_near = 2, child_failed = 3, kept = 4 };

// Returns true where the child has ended as it should.
bool end_in_a_child(std::unique_ptr<Channel>& channel) {
  const pid_t child = fork();
  if (child == 0) {
    channel.reset();
    _exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status == 0;
}

// A rank that ends without ending its channel keeps no memory of the other.
int outlive_the_other() {
  const auto live_bytes = [] { return Arena::process().statistics().live_bytes; };
  const std::size_t before = live_bytes();
  auto channel = std::make_unique<Channel>(Communicator::world());
  if (!channel->is_near(1 - channel->rank())) return not_near;
  if (forked_rank() == 1) {
    static_cast<void>(channel.release());
    return good;
  }
  const os::ProcessWatch other(process_of(1));
  while (!other.ended()) usleep(1000);
  channel.reset();
  return live_bytes() == before ? good : kept;
}

// Takes and overwrites what the arena would give away of an ended channel.
void use_the_arena() {
  constexpr std::size_t bytes = std::size_t{256} << 10;  // a ring, and more
  std::vector<void*> blocks;
  for (int i = 0; i < 8; ++i) {
    blocks.push_back(Arena::process().allocate(bytes, 4096));
    std::memset(blocks.back(), 0xff, bytes);
  }
  for (void* block : blocks) Arena::process().deallocate(block);
}

int live() {
  auto channel = std::make_unique<Channel>(Communicator::world());
  if (!channel->is_near(1 - channel->rank())) return not_near;
  constexpr int messages = 40;
  int value = -1;
  if (forked_rank() == 0) {
    if (!end_in_a_child(channel)) return child_failed;
    meet(2);
    meet(4);  // the messages lie in the memory of a rank that has ended its channel
    for (int i = 0; i < messages; ++i) {
      channel->receive(&value, sizeof value, 1);
      if (value != i) return lost;
    }
  } else {
    meet(2);
    for (int i = 0; i < messages; ++i) channel->send(&i, sizeof i, 0);
    channel.reset();
    use_the_arena();
    meet(4);
  }
  meet(6);
  return good;
}

TEST(Fork, AChildThatEndsItsCopyOfAChannelEndsNothing) {
  const std::vector<int> codes = run_forked(2, live);
  if (codes[0] == not_near) GTEST_SKIP() << "processes here cannot reach each other's memory";
  EXPECT_EQ(codes, (std::vector<int>{good, good}));
}

TEST(EndedRanks, KeepNoMemoryOfTheOthers) {
  const std::vector<int> codes = run_forked(2, outlive_the_other);
  if (codes[0] == not_near) GTEST_SKIP() << "processes here cannot reach each other's memory";
  EXPECT_EQ(codes, (std::vector<int>{good, good}));
}

}  // namespace
}  // namespace ropewalk::test
