// How a halo's faces travel, against halos that are made: by the same strategies, or by none.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "ropewalk/halo.hpp"
#include "ropewalk/memory.hpp"
#include "ropewalk/tuning.hpp"
#include "support/thread_mpi.hpp"

namespace ropewalk {
namespace {

std::set<std::string> possible(const Explanation& explained) {
  std::set<std::string> names;
  for (const Alternative& one : explained.alternatives) {
    if (one.possible) names.insert(one.path);
  }
  return names;
}

// Returns the strategy of a halo of two ranks, "error" where it cannot be made.
std::string made(const std::string& layout, Strategy strategy, bool is_private) {
  constexpr std::size_t bytes = 4096;
  std::string found;
  test::run_ranks(2, [&](int rank) {
    const CartesianGrid line(Communicator::world(), {2}, {true});
    EndpointSet endpoints(Communicator::world(), {.lanes = 1, .threads = true, .pin = false});
    Buffer<std::byte> shared(4 * bytes);
    std::vector<std::byte> own(4 * bytes);
    std::byte* memory = is_private ? own.data() : shared.data();
    const HaloOptions options{.strategy = strategy};
    std::string here = "error";
    try {
      if (layout == "buffers") {
        here = name(Halo(line, endpoints, HaloBuffers{{bytes, bytes}}, options).strategy());
      } else if (layout == "fields") {
        const Field field{memory, 1024, {2}, {1}};
        here = name(Halo(line, endpoints, std::vector{field}, options).strategy());
      } else {
        const FacePackets faces{
            {memory, memory + bytes}, {memory + 2 * bytes, memory + 3 * bytes}, {bytes, bytes}};
        here = name(Halo(line, endpoints, faces, options).strategy());
      }
    } catch (const Error&) {
    }
    if (rank == 0) found = here;
  });
  return found;
}

TEST(ExplainHalo, SaysWhatIsMade) {
  for (const std::string layout : {"packets", "fields", "buffers"}) {
    for (const bool is_private : {false, true}) {
      for (const Strategy strategy :
           {Strategy::automatic, Strategy::sequential, Strategy::concurrent, Strategy::threaded,
            Strategy::direct, Strategy::put}) {
        const Situation situation{.private_memory = is_private};
        const Explanation explained = explain_halo(layout, strategy, 4096, situation);
        const std::string found = made(layout, strategy, is_private);
        const std::string of = layout + ", " + name(strategy) + (is_private ? ", private" : "");
        if (explained.path == "automatic") {
          EXPECT_TRUE(possible(explained).contains(found)) << of << ": " << found;
        } else {
          EXPECT_EQ(explained.path, found) << of << ": " << explained.why;
        }
      }
    }
  }
}

TEST(ExplainHalo, SaysWhyNot) {
  const Explanation refused = explain_halo("packets", Strategy::put, 4096, {});
  EXPECT_EQ(refused.path, "error");
  EXPECT_EQ(refused.why, "the faces are not in buffers of the halo");
  const Explanation own =
      explain_halo("fields", Strategy::automatic, 4096, {.private_memory = true});
  EXPECT_EQ(possible(own), (std::set<std::string>{"concurrent", "direct", "threaded"}));
  EXPECT_EQ(own.alternatives[0].why, "the faces are not in buffers of the halo");
  EXPECT_NE(own.alternatives[1].how.find("by the kernel"), std::string::npos);
  const Explanation attached =
      explain_halo("fields", Strategy::automatic, 4096, {.private_memory = true, .xpmem = true});
  EXPECT_NE(attached.alternatives[1].how.find("XPMEM"), std::string::npos);
  const Explanation staged =
      explain_halo("fields", Strategy::automatic, 4096, {.private_memory = true, .cma = false});
  EXPECT_EQ(staged.alternatives[1].how.find("faces are staged"), 0U);
  EXPECT_THROW(explain_halo("cubes", Strategy::automatic, 8, {}), Error);
}

TEST(ExplainHalo, SaysThatMessagesGoToOtherNodes) {
  const Explanation apart = explain_halo("buffers", Strategy::direct, 4096, {.nodes = 2});
  EXPECT_EQ(apart.path, "direct");
  EXPECT_EQ(apart.how,
            "inside a node faces are copied from memory to memory, by whoever comes first; to "
            "other nodes they are messages, which leave first, posted by comm threads");
  const Explanation crowded =
      explain_halo("buffers", Strategy::automatic, 4096, {.nodes = 2, .crowded = true});
  EXPECT_TRUE(possible(crowded).contains("put"));
  EXPECT_NE(crowded.alternatives[0].how.find("by the caller"), std::string::npos);
}

// Counted by hand: of a torus of 4 x 2 ranks on two nodes, each node has two rows, so that four
// of its ranks have one neighbour each on the other node. On four nodes of two ranks that are rows,
// all links between rows leave; so do those of blocks of two rows.
TEST(ExplainHalo, CountsWhatLeavesANode) {
  const std::vector<HaloTraffic> two = halo_traffic({4, 2}, 1000, {.ranks = 4, .nodes = 2});
  ASSERT_EQ(two.size(), 2U);
  EXPECT_EQ(two[0].order, "row_major");
  EXPECT_EQ(two[0].faces, 16U);
  EXPECT_EQ(two[0].leaving, 4U);
  EXPECT_EQ(two[0].bytes, 4000U);
  EXPECT_EQ(two[1].leaving, 4U);
  // An 8 x 8 torus: rows of four have two faces a rank above and below, and one at either end.
  const std::vector<HaloTraffic> many = halo_traffic({8, 8}, 8, {.ranks = 4, .nodes = 16});
  EXPECT_EQ(many[0].leaving, 10U);
  EXPECT_EQ(many[1].leaving, 8U);
  EXPECT_EQ(many[1].faces, 16U);
  // The same torus on one node with 16 domains: what has left a node now crosses domains.
  const std::vector<HaloTraffic> domains = halo_traffic({8, 8}, 8, {.ranks = 64, .domains = 16});
  EXPECT_EQ(domains[0].leaving, 0U);
  EXPECT_EQ(domains[0].crossing, 160U);
  EXPECT_EQ(domains[1].crossing, 128U);
  EXPECT_EQ(domains[1].crossing_bytes, 1024U);
  EXPECT_THROW(halo_traffic({3, 2}, 8, {.ranks = 4, .nodes = 2}), Error);
}

}  // namespace
}  // namespace ropewalk
