// Options, arithmetic and loop body of the overlap benchmark.
#include <gtest/gtest.h>

#include <algorithm>

#include "overlap/measure.hpp"
#include "overlap/options.hpp"
#include "overlap/tables.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::bench {
namespace {

OverlapOptions parsed(std::vector<std::string> words) {
  OverlapOptions options;
  CLI::App app("test", "ropewalk-bench-overlap");
  describe(app, options);
  std::reverse(words.begin(), words.end());  // as CLI11 takes them
  app.parse(words);
  check(options);
  return options;
}

std::string refusal(const std::vector<std::string>& words, int ranks = 2, int threads = 4) {
  try {
    const OverlapOptions options = parsed(words);
    overlap_grid(options, ranks);
    comm_threads(options, threads);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::argument);
    return error.what();
  }
  return "accepted";
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

TEST(OverlapBench, TheInteriorIsTheSameInAnyOrder) {
  Mult mult(50);
  mult.compute(0, 50);
  EXPECT_TRUE(mult.right());
  mult.clear();
  EXPECT_FALSE(mult.right());
  mult.compute(20, 50);
  EXPECT_FALSE(mult.right());
  mult.compute(0, 20);
  EXPECT_TRUE(mult.right());
}

TEST(OverlapBench, ARowHasAllTimes) {
  OverlapResult result;
  result.L = 8;
  result.exchange_bytes = 1000;
  result.us[0] = {10};
  result.us[1] = {4};
  result.us[2] = {15};
  result.us[3] = {12};
  const Json row = overlap_row({2, 1, 1, "MPI", {1, 1, 1, 2}}, result);
  EXPECT_DOUBLE_EQ(row["hidden_percent"], 50);
  EXPECT_DOUBLE_EQ(row["gain"], 1.25);
  EXPECT_DOUBLE_EQ(row["exchange_mb_per_s"], 250);
  EXPECT_DOUBLE_EQ(row["limit_us"], 10);
}

}  // namespace
}  // namespace ropewalk::bench
