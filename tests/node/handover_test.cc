// Descriptors handed over through abstract sockets.
#include "node/handover.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/thread_mpi.hpp"

namespace ropewalk::node {
namespace {

// Twelve ranks: more than the ten datagrams that a socket queues by default, so nobody may only
// send.
TEST(Handover, EveryRankGetsEveryDescriptor) {
  constexpr int ranks = 12;
  test::run_ranks(ranks, [](int rank) {
    const os::Descriptor own(memfd_create("handover-test", MFD_CLOEXEC));
    ASSERT_GE(own.get(), 0);
    ASSERT_EQ(write(own.get(), &rank, sizeof rank), static_cast<ssize_t>(sizeof rank));
    const std::vector<RankFacts> facts(ranks);
    const auto received = swap_descriptors(mpi::comm_world(), own.get(), facts);
    ASSERT_EQ(received.size(), facts.size());
    for (int peer = 0; peer < ranks; ++peer) {
      if (peer == rank) continue;
      int content = -1;
      ASSERT_EQ(pread(received[peer].get(), &content, sizeof content, 0),
                static_cast<ssize_t>(sizeof content));
      EXPECT_EQ(content, peer);
    }
  });
}

}  // namespace
}  // namespace ropewalk::node
