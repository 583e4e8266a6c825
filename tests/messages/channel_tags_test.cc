// The tags that a channel takes.
#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>

#include "messages/expect_error.hpp"
#include "mpi/mpi.hpp"
#include "ropewalk/channel.hpp"
#include "support/thread_mpi.hpp"

namespace ropewalk {
namespace {

constexpr int most = std::numeric_limits<int>::max();

// Rank 0 sends itself and rank 1 a message.
void expect_goes(Channel& channel, int tag) {
  int sent = tag;
  if (channel.rank() == 0) channel.send(&sent, sizeof sent, 0, tag);
  if (channel.rank() == 0) channel.send(&sent, sizeof sent, 1, tag);
  int came = 0;
  EXPECT_EQ(channel.receive(&came, sizeof came, 0, tag == most ? any_tag : tag).tag, tag);
  EXPECT_EQ(came, tag);
}

TEST(ChannelTags, OnOneNodeTheyHaveAllBitsOfAnInt) {
  // The MPI carries none of the messages.
  test::RunOptions few;
  few.tag_bound = largest_tag;
  test::run_ranks(
      2,
      [](int) {
        Channel channel(Communicator::world());
        EXPECT_EQ(channel.tag_bound(), most);
        for (const int tag : {0, largest_tag + 1, most - 1, most}) expect_goes(channel, tag);
        mpi::barrier(mpi::comm_world());
      },
      few);
}

TEST(ChannelTags, OverNodesTheyAreThoseOfTheMpi) {
  ::setenv("ROPEWALK_NODES", "1", 1);
  test::RunOptions some;
  some.tag_bound = 70000;
  test::run_ranks(
      2,
      [](int) {
        Channel channel(Communicator::world());
        EXPECT_FALSE(channel.is_near(1 - channel.rank()));
        EXPECT_EQ(channel.tag_bound(), 70000);
        for (const int tag : {0, largest_tag + 1, 70000}) expect_goes(channel, tag);
        int value = 0;
        test::expect_error(ErrorCode::argument, "tag: 70001; pass 0 to 70000",
                           [&] { channel.send(&value, sizeof value, 0, 70001); });
        test::expect_error(ErrorCode::argument, "tag: 70001; pass 0 to 70000, or any_tag",
                           [&] { channel.receive(&value, sizeof value, 0, 70001); });
        mpi::barrier(mpi::comm_world());
      },
      some);
  ::unsetenv("ROPEWALK_NODES");
}

}  // namespace
}  // namespace ropewalk
