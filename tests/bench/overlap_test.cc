// Options, arithmetic and loop body of the overlap benchmark.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>

#include "bench/command_line.hpp"
#include "overlap/measure.hpp"
#include "overlap/openmp.hpp"
#include "overlap/options.hpp"
#include "overlap/tables.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::bench {
namespace {

OverlapOptions parsed(std::vector<std::string> words) {
  return parse_words<OverlapOptions>("ropewalk-bench-overlap", std::move(words));
}

std::string refusal(const std::vector<std::string>& words, int ranks = 2, int threads = 4) {
  return refusal_of([&] {
    const OverlapOptions options = parsed(words);
    overlap_layouts(options, ranks, ranks);
    comm_threads(options, threads);
  });
}

// 10 to compute, 4 to exchange: 14 hides nothing, 10 all, 11 three quarters.
TEST(OverlapBench, HiddenIsAShareOfTheShorter) {
  EXPECT_DOUBLE_EQ(hidden_share(10, 4, 14), 0);
  EXPECT_DOUBLE_EQ(hidden_share(10, 4, 10), 1);
  EXPECT_DOUBLE_EQ(hidden_share(10, 4, 11), 0.75);
  EXPECT_DOUBLE_EQ(hidden_share(4, 10, 16), -0.5);
  EXPECT_DOUBLE_EQ(hidden_share(10, 0, 10), 0);
}

TEST(OverlapBench, CommThreads) {
  EXPECT_EQ(comm_threads(parsed({}), 1), (std::vector<int>{0}));
  EXPECT_EQ(comm_threads(parsed({}), 6), (std::vector<int>{0, 1, 2, 4}));
  EXPECT_EQ(comm_threads(parsed({"--comm-threads", "0,3"}), 4), (std::vector<int>{0, 3}));
}

TEST(OverlapBench, Refusals) {
  EXPECT_NE(refusal({"--L", "7"}).find("write 8"), std::string::npos);
  EXPECT_NE(refusal({"--comm-threads", "5"}).find("--threads 5"), std::string::npos);
  EXPECT_NE(refusal({"--mpi-grid", "1.1.1.3"}).find("makes 3 ranks"), std::string::npos);
  EXPECT_NE(refusal({}, 1).find("at least two"), std::string::npos);
  EXPECT_NE(refusal({"--strategy", "fast"}).find("--strategy"), std::string::npos);
  EXPECT_EQ(refusal({"--strategy", "direct", "--mpi-grid", "2.1.1.1"}), "accepted");
}

TEST(OverlapBench, GridsAreMeasuredInTurn) {
  const auto layouts = overlap_layouts(parsed({"--mpi-grid", "1.1.1.2,2.1.1.1"}), 2, 2);
  ASSERT_EQ(layouts.size(), 2U);
  EXPECT_EQ(layouts[0].global(8), (lattice::Extents{8, 8, 8, 16}));
  EXPECT_EQ(layouts[1].global(8), (lattice::Extents{16, 8, 8, 8}));
  const auto node = overlap_layouts(parsed({"--volume", "node", "--L", "8"}), 4, 2);
  EXPECT_EQ(node[0].local(8), (lattice::Extents{8, 8, 8, 4}));
}

// Four faces: two threads have two each, three cannot have as many, and of six two have none. Parts
// of split faces go round in the same way.
TEST(OverlapBench, CommThreadsShareFacesEvenlyOrNot) {
  EXPECT_TRUE(evenly_dealt(4, 1, 0));
  EXPECT_TRUE(evenly_dealt(4, 1, 1));
  EXPECT_TRUE(evenly_dealt(4, 2, 2));
  EXPECT_FALSE(evenly_dealt(4, 3, 3));
  EXPECT_FALSE(evenly_dealt(4, 2, 4));
  EXPECT_TRUE(evenly_dealt(2, 4, 4));
  EXPECT_FALSE(evenly_dealt(2, 4, 3));
}

TEST(OverlapBench, TheTableNamesCommThreadsThatDoNotDivideTheFaces) {
  OverlapResults all;
  all.cases.resize(2);
  for (OverlapResult& one : all.cases) {
    one.rank_grid = {1, 1, 2, 2};
    one.lanes = 3;
    for (auto& us : one.us) us = {1};
  }
  all.cases[1].comm_threads = 3;
  const std::string table = overlap_table({}, all);
  EXPECT_NE(table.find("3 comm threads cannot share the 4 faces of rank grid 1.1.2.2"),
            std::string::npos);
  EXPECT_EQ(table.find("0 comm threads cannot"), std::string::npos);
}

// One rank takes 9 alone and 10 beside the other; 12 with the exchange, whichever way is better.
TEST(OverlapBench, WeakScaling) {
  OverlapResult result;
  result.us[2] = {15};
  result.us[3] = {12};
  OverlapResults all;
  all.ranks = 2;
  all.alone = {{9}, {10}};
  EXPECT_DOUBLE_EQ(all.scaling(result), 1.5);
  EXPECT_DOUBLE_EQ(all.scaling_limit(), 1.8);
}

TEST(OverlapBench, ARowHasAllTimes) {
  OverlapResult result;
  result.L = 8;
  result.exchange_bytes = 1000;
  result.us[0] = {10};
  result.us[1] = {4};
  result.us[2] = {15};
  result.us[3] = {12};
  const Json row = overlap_row({2, 1, 1, "single", "MPI"}, {}, result);
  EXPECT_DOUBLE_EQ(row["hidden_percent"], 50);
  EXPECT_DOUBLE_EQ(row["gain"], 1.25);
  EXPECT_DOUBLE_EQ(row["exchange_mb_per_s"], 250);
  EXPECT_DOUBLE_EQ(row["limit_us"], 10);
  EXPECT_EQ(row["face_precision"], "full");
  EXPECT_FALSE(row.contains("regions_us"));  // of a compiler without OpenMP
  result.us[4] = {13};
  EXPECT_DOUBLE_EQ(overlap_row({2, 1, 1, "single", "MPI"}, {}, result)["regions_us"], 13);
}

// Each worker once, by as many threads as OpenMP gives.
TEST(OverlapBench, ParallelRegionsCallEveryWorkerOnce) {
  std::array<std::atomic<int>, 5> calls{};
  in_parallel_region(5, [&](int worker) { ++calls[static_cast<std::size_t>(worker)]; });
  for (const std::atomic<int>& one : calls) EXPECT_EQ(one.load(), 1);
}

}  // namespace
}  // namespace ropewalk::bench
