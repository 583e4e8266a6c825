// What is explained is what is done: every collective at and around every threshold, by ranks as
// threads, against the path that each call says it has taken.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "node/control.hpp"
#include "ropewalk/collectives.hpp"
#include "ropewalk/error.hpp"
#include "ropewalk/memory.hpp"
#include "ropewalk/tuning.hpp"
#include "settings/value.hpp"
#include "support/effort.hpp"
#include "support/thread_mpi.hpp"
#include "topology/machine.hpp"
#include "tuning/limits.hpp"
#include "tuning/over_nodes.hpp"

namespace ropewalk::tuning {
namespace {

constexpr ElementType bytes_type = ElementType::uint8;
constexpr ReductionOp sum = ReductionOp::sum;

// Makes the calls with a length for each block, of equal blocks. Returns false where `what` is none
// of them.
bool call_with_counts(Collectives& ranks, const std::string& what, void* send, void* receive,
                      std::size_t bytes) {
  const auto size = static_cast<std::size_t>(ranks.size());
  const std::vector<std::size_t> counts(size, bytes);
  std::vector<std::size_t> at;
  for (std::size_t rank = 0; rank < size; ++rank) at.push_back(rank * bytes);
  if (what == "allgatherv") {
    ranks.allgatherv(send, bytes, receive, counts.data(), at.data());
  } else if (what == "gatherv") {
    ranks.gatherv(send, bytes, receive, counts.data(), at.data(), 0);
  } else if (what == "scatterv") {
    ranks.scatterv(send, counts.data(), at.data(), receive, bytes, 0);
  } else if (what == "alltoallv") {
    ranks.alltoallv(send, counts.data(), at.data(), receive, counts.data(), at.data());
  } else {
    return false;
  }
  return true;
}

// Makes a call from `send` to `receive`, which have room for a block of every rank.
void call(Collectives& ranks, const std::string& what, void* send, void* receive,
          std::size_t bytes) {
  if (what == "barrier") return ranks.barrier();
  if (what == "broadcast") return ranks.broadcast(send, bytes, 0);
  if (what == "reduce") return ranks.reduce(send, receive, bytes, bytes_type, sum, 0);
  if (what == "allreduce") return ranks.allreduce(send, receive, bytes, bytes_type, sum);
  if (what == "scan") return ranks.scan(send, receive, bytes, bytes_type, sum);
  if (what == "exscan") return ranks.exscan(send, receive, bytes, bytes_type, sum);
  if (what == "allgather") return ranks.allgather(send, receive, bytes);
  if (what == "gather") return ranks.gather(send, receive, bytes, 0);
  if (what == "scatter") return ranks.scatter(send, receive, bytes, 0);
  if (what == "alltoall") return ranks.alltoall(send, receive, bytes);
  if (call_with_counts(ranks, what, send, receive, bytes)) return;
  ASSERT_EQ(what, "reduce_scatter");
  std::vector<std::size_t> counts(static_cast<std::size_t>(ranks.size()), 0);
  counts[0] = bytes;
  ranks.reduce_scatter(send, receive, counts.data(), bytes_type, sum);
}

// Returns sizes at, below and above each threshold, for the vector and for blocks of all or all
// others.
std::set<std::size_t> sizes_to_try(const Situation& situation) {
  constexpr std::size_t most = std::size_t{1} << 20;
  std::set<std::size_t> sizes{1, most};
  // These blocks of an alltoallv fill a slot together with their table.
  const std::size_t room = node::Slot::payload_bytes - alltoallv_table_bytes(situation.ranks);
  const std::size_t fits = room / static_cast<std::size_t>(situation.ranks);
  sizes.insert({fits, fits + 1});
  for (const Threshold& one : thresholds(situation)) {
    for (int parts = 1; parts <= situation.ranks * situation.nodes; ++parts) {
      const std::size_t at = one.value / static_cast<std::size_t>(parts);
      const std::size_t step = test::sanitized ? 0 : 1;
      for (const std::size_t size : {at - step, at, at + step}) {
        if (size > 0 && size <= most) sizes.insert(size);
      }
    }
  }
  return sizes;
}

// Where blocks lie in a root's slot each begins on a line, so that the sum of their bytes tells
// about a line for each less than what fits.
bool is_near_the_slots_end(const std::string& what, std::size_t bytes, const Situation& situation) {
  const auto others = static_cast<std::size_t>(situation.ranks - 1);
  const std::size_t limit = limits_for(situation.ranks, situation.crowded).rooted_bytes;
  const std::size_t all = bytes * others;
  return what.starts_with("scatter") && all + 64 * (others + 1) > limit && all < limit + 64;
}

class Explained : public testing::TestWithParam<Situation> {
 protected:
  Explained() : situation_(GetParam()) {
    if (situation_.nodes > 1) {
      setenv("ROPEWALK_NODES", std::to_string(situation_.ranks).c_str(), 1);
    }
    situation_.crowded = situation_.ranks > topology::usable_cpus().count();
  }
  ~Explained() override { unsetenv("ROPEWALK_NODES"); }

  int all_ranks() const { return situation_.ranks * situation_.nodes; }
  std::size_t room() const {
    return (std::size_t{1} << 20) * static_cast<std::size_t>(all_ranks());
  }

  void compare(Collectives& ranks, void* send, void* receive) {
    for (const std::string& what : explained_collectives()) {
      // Whether ranks of pretended nodes share cores is another matter than on real ones.
      const bool depends = what.starts_with("alltoall") || what == "gatherv";
      if (depends && situation_.nodes > 1) continue;
      for (const std::size_t bytes : sizes_to_try(situation_)) {
        if (is_near_the_slots_end(what, bytes, situation_)) continue;
        const Explanation explained = explain_collective(what, bytes, situation_);
        call(ranks, what, send, receive, bytes);
        // The root tells, but where it alone does not use the kernel that all others read by.
        const int teller = what.starts_with("scatter") && explained.path == "cma" ? 1 : 0;
        if (ranks.rank() != teller) continue;
        EXPECT_EQ(explained.path, name(ranks.last_path()))
            << what << " of " << bytes << ", because " << explained.why;
      }
    }
  }

  Situation situation_;
};

TEST_P(Explained, IsWhatIsDone) {
  test::run_ranks(all_ranks(), [&](int) {
    Collectives ranks(Communicator::world());
    ASSERT_EQ(ranks.nodes(), situation_.nodes) << ranks.reason();
    if (situation_.private_memory) {
      std::vector<unsigned char> send(room());
      std::vector<unsigned char> receive(room());
      compare(ranks, send.data(), receive.data());
    } else {
      const Buffer<unsigned char> send(room());
      Buffer<unsigned char> receive(room());
      compare(ranks, const_cast<unsigned char*>(send.data()), receive.data());
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, Explained,
                         testing::Values(Situation{.ranks = 2}, Situation{.ranks = 3},
                                         Situation{.ranks = 2, .private_memory = true},
                                         Situation{.ranks = 3, .private_memory = true},
                                         Situation{.ranks = 2, .nodes = 2},
                                         Situation{.ranks = 1, .nodes = 3}));

// ---- what an explanation says

const Alternative& taken(const Explanation& explained) {
  return *std::ranges::find_if(explained.alternatives, &Alternative::taken);
}

TEST(Explanation, NamesTheRowThatDecidedAndTheNextOnes) {
  const Explanation explained = explain_collective("allreduce", 1000000, {.private_memory = true});
  EXPECT_EQ(explained.path, "cma");
  EXPECT_EQ(explained.why, "the vector (1000000) is at least node.cma_bytes (16K)");
  EXPECT_EQ(taken(explained).threshold, "node.cma_bytes");
  EXPECT_EQ(explained.alternatives.front().why,
            "the vector (1000000) is more than node.inlined_bytes (512)");
  ASSERT_EQ(explained.smaller.size(), 1U);
  EXPECT_EQ(explained.smaller[0].bytes, limits_for(2, false).alone_bytes);
  EXPECT_EQ(explained.smaller[0].path, "staged");
  EXPECT_EQ(explained.smaller[0].threshold, "node.piecewise_alone_bytes");
  EXPECT_TRUE(explained.larger.empty());
}

TEST(Explanation, OfTheArenasAndOfDomains) {
  const Explanation small = explain_collective("allreduce", 512, {});
  EXPECT_EQ(small.path, "inlined");
  ASSERT_EQ(small.larger.size(), 1U);
  EXPECT_EQ(small.larger[0].bytes, 513U);
  EXPECT_EQ(small.larger[0].path, "mapped");
  EXPECT_EQ(small.larger[0].threshold, "node.inlined_bytes");
  const Explanation levels = explain_collective("allreduce", 16384, {.ranks = 8, .domains = 2});
  EXPECT_EQ(taken(levels).threshold, "node.two_level_bytes");
  EXPECT_EQ(levels.smaller[0].bytes, 16383U);
}

TEST(Explanation, OverNodesAsksTheChoiceOfTheNodes) {
  const Situation four{.ranks = 2, .nodes = 4};
  const Explanation ring = explain_collective("allreduce", 1 << 20, four);
  EXPECT_EQ(ring.path, "nodes");
  EXPECT_EQ(ring.how, "a ring of leaders");
  for (const auto& [at, algorithm] : {std::pair{0U, "flat"}, {1U, "mpi"}, {2U, "ring"}}) {
    EXPECT_EQ(ring.alternatives.at(at).algorithm, algorithm);
  }
  EXPECT_EQ(ring.detail, "2 leaders a node, chunks of up to 128K");
  EXPECT_EQ(ring.smaller[0].bytes, (256U << 10) - 1);
  EXPECT_EQ(ring.smaller[0].threshold, "nodes.ring_bytes");
  EXPECT_EQ(explain_collective("scan", 8, four).path, "mpi");
  EXPECT_EQ(explain_collective("scan", 8, four).alternatives[0].algorithm, "whole");
  EXPECT_EQ(explain_collective("barrier", 0, {.ranks = 1, .nodes = 4}).path, "mpi");
}

TEST(Explanation, FindsNoWayButThoseOfTheChoice) {
  const Values values = values_over_nodes({});
  for (const int nodes : {2, 3, 5, 16}) {
    for (const int ranks : {1, 2, 7}) {
      const Shape shape{nodes, ranks, ranks};
      for (std::size_t bytes = 1; bytes < (std::size_t{1} << 32); bytes = bytes * 5 / 4 + 1) {
        const Situation situation{.ranks = ranks, .nodes = nodes};
        const bool by_mpi = choose_broadcast(values, shape, bytes) == BroadcastWay::mpi;
        EXPECT_EQ(explain_collective("broadcast", bytes, situation).path == "mpi", by_mpi)
            << bytes << " bytes, " << nodes << " nodes of " << ranks;
      }
    }
  }
}

TEST(Explanation, OfSmallRootedCallsUnderOpenMpi) {
  const Values openmpi = values_over_nodes({.openmpi = true, .openmpi_eager = true});
  const Values others = values_over_nodes({});
  for (const int ranks : {1, 2, 7}) {
    const Shape shape{4, ranks, ranks};
    for (std::size_t bytes = 1; bytes < (std::size_t{1} << 24); bytes = bytes * 5 / 4 + 1) {
      for (const bool is_openmpi : {false, true}) {
        const Values& values = is_openmpi ? openmpi : others;
        const Situation situation{.ranks = ranks, .nodes = 4, .int_counts = is_openmpi};
        const bool flat = rooted_goes_flat(values, shape, bytes);
        EXPECT_EQ(flat, is_openmpi && bytes < (8U << 10));
        for (const char* rooted : {"gather", "scatter", "reduce"}) {
          const Explanation explained = explain_collective(rooted, bytes, situation);
          EXPECT_EQ(
              explained.how.starts_with("a binomial") || explained.how.starts_with("a message"),
              flat)
              << rooted << ", " << bytes << " bytes";
        }
        const ReductionChoice choice = choose_reduction(
            values, shape, {.bytes = bytes, .rooted = true, .longest_message_bytes = 1 << 16});
        EXPECT_EQ(choice.algorithm == Algorithm::flat, flat);
      }
    }
  }
}

TEST(Explanation, HeedsTheSettings) {
  const settings::Lookup before = settings::replace_environment([](const char* name) {
    return std::string_view(name) == "ROPEWALK_ALLREDUCE" ? "doubling" : nullptr;
  });
  const Explanation explained = explain_collective("allreduce", 1 << 20, {.nodes = 2});
  settings::replace_environment(before);
  EXPECT_EQ(explained.why, "ROPEWALK_ALLREDUCE is doubling");
  EXPECT_EQ(explained.how, "recursive doubling among one rank a node");
}

TEST(Explanation, OfBlocksOfAnySizeOverNodes) {
  const Situation alone{.ranks = 2, .nodes = 4};
  const Situation crowded{.ranks = 2, .nodes = 4, .crowded = true};
  const Situation ints{.ranks = 2, .nodes = 4, .crowded = true, .int_counts = true};
  const auto path = [](const char* what, const Situation& situation, std::size_t bytes = 4096) {
    return explain_collective(what, bytes, situation).path;
  };
  for (const char* what : {"gatherv", "alltoallv"}) {
    EXPECT_EQ(path(what, alone), "nodes") << what;
    EXPECT_EQ(path(what, crowded), "mpi") << what;
    EXPECT_EQ(path(what, ints), "nodes") << what;
  }
  EXPECT_EQ(path("scatterv", alone), "mpi");
  EXPECT_EQ(path("scatterv", ints), "nodes");
  EXPECT_EQ(path("gatherv", {.ranks = 2, .nodes = 65}), "mpi");
  EXPECT_EQ(path("alltoallv", {.ranks = 1, .nodes = 4}), "mpi");
  // Blocks of 32K go together, as long as four of them are no more than 1M.
  const Explanation together = explain_collective("alltoallv", 32768, alone);
  ASSERT_EQ(together.larger.size(), 1U);
  EXPECT_EQ(together.larger[0].bytes, 32769U);
  EXPECT_EQ(explain_collective("alltoallv", 32769, alone).how,
            "each block straight from rank to rank");
}

TEST(Explanation, TakesTheNamesOfMpi) {
  EXPECT_EQ(explained_name("bcast"), "broadcast");
  EXPECT_EQ(explained_name("MPI_Bcast"), "broadcast");
  EXPECT_EQ(explained_name("reduce-scatter-block"), "reduce_scatter");
  EXPECT_EQ(explained_name("MPI_Alltoallv"), "alltoallv");
  EXPECT_EQ(explained_name("allsum"), "");
  for (const std::string& name : explained_collectives()) EXPECT_EQ(explained_name(name), name);
  EXPECT_EQ(explain_collective("bcast", 4096, {}).why,
            explain_collective("broadcast", 4096, {}).why);
}

TEST(Explanation, RefusesWhatCannotBe) {
  EXPECT_THROW(explain_collective("allsum", 8, {}), Error);
  EXPECT_THROW(explain_collective("allreduce", 8, {.ranks = 0}), Error);
  EXPECT_THROW(explain_collective("allreduce", 8, {.nodes = 0}), Error);
  EXPECT_THROW(explain_collective("allreduce", 8, {.ranks = 2, .domains = 3}), Error);
}

}  // namespace
}  // namespace ropewalk::tuning
