// Sizes, options and tables of the halo exchange benchmark.
#include <gtest/gtest.h>

#include "bench/command_line.hpp"
#include "common/parse.hpp"
#include "comms/options.hpp"
#include "comms/tables.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::bench {
namespace {

CommsOptions parsed(std::vector<std::string> words) {
  return parse_words<CommsOptions>("ropewalk-bench-comms", std::move(words));
}

std::string refusal(const std::vector<std::string>& words, int ranks = 2) {
  return refusal_of([&] {
    const CommsOptions options = parsed(words);
    lattices(options, rank_grid(options, ranks));
  });
}

// The numbers are those of the column "Bytes" of tables I to IV.
TEST(Comms, FaceBytesAreThoseOfThePaper) {
  const std::vector<std::size_t> paper = {49152,   393216,   1327104,  3145728,
                                          6144000, 10616832, 16859136, 25165824};
  const CommsOptions options = parsed({});
  const std::vector<LocalLattice> all = lattices(options, {1, 1, 1, 2});
  ASSERT_EQ(all.size(), paper.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (int d = 0; d < 4; ++d) EXPECT_EQ(face_bytes(all[i], d), paper[i]);
    EXPECT_EQ(exchange_bytes(all[i], {1, 1, 1, 2}), 2 * paper[i]);
    EXPECT_EQ(exchange_bytes(all[i], {2, 2, 2, 2}), 8 * paper[i]);
  }
}

TEST(Comms, OnlyDividedDimensionsCommunicate) {
  const LocalLattice lattice{{4, 4, 8, 16}, 8};
  EXPECT_EQ(label(lattice), "4.4.8.16");
  EXPECT_EQ(exchange_bytes(lattice, {1, 1, 1, 1}), 0U);
  EXPECT_EQ(exchange_bytes(lattice, {1, 1, 2, 1}), 2 * 4U * 4 * 16 * 8 * 96);
  EXPECT_GE(slot_bytes(lattice, {1, 1, 2, 1}), 2 * exchange_bytes(lattice, {1, 1, 2, 1}));
}

TEST(Comms, GridIsDividedByTheRanks) {
  const CommsOptions options = parsed({"--grid", "8.8.8.32", "--mpi-grid", "1.1.2.2"});
  const auto all = lattices(options, rank_grid(options, 4));
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(dotted(all[0].local), "8.8.4.16");
}

TEST(Comms, RanksGoToTheLastDimensionByDefault) {
  EXPECT_EQ(rank_grid(parsed({}), 3), std::vector<int>({1, 1, 1, 3}));
}

TEST(Comms, ThreadsAreNeededForThreadedOnly) {
  CommsOptions options;
  options.strategies = "sequential,concurrent";
  EXPECT_FALSE(check(options));
  CommsOptions threaded;
  EXPECT_TRUE(check(threaded));
}

TEST(Comms, RefusalsNameOptionAndRemedy) {
  EXPECT_NE(refusal({"--mpi-grid", "1.1.1.3"}).find("-n 3"), std::string::npos);
  EXPECT_NE(refusal({"--mpi-grid", "1.2"}).find("4 are expected"), std::string::npos);
  EXPECT_NE(refusal({"--mpi-grid", "2000000.2000000.1.1"}).find("--mpi-grid"), std::string::npos);
  EXPECT_NE(refusal({"--grid", "8.8.8.9"}).find("such as 10"), std::string::npos);
  EXPECT_NE(refusal({"--L", "0"}).find("--L"), std::string::npos);
  EXPECT_NE(refusal({"--line-rate", "fast"}).find("12500"), std::string::npos);
  EXPECT_NE(refusal({"--line-rate", "-1"}).find("--line-rate"), std::string::npos);
  EXPECT_NE(refusal({"--strategy", "quick"}).find("threaded"), std::string::npos);
  EXPECT_NE(refusal({"--memory", "mcdram"}).find("any,ddr,hbm,cxl"), std::string::npos);
  EXPECT_NE(refusal({"--pages", "enormous"}).find("memalign"), std::string::npos);
  EXPECT_NE(refusal({}, 1).find("-n 2"), std::string::npos);
  EXPECT_EQ(refusal({}), "accepted");
}

// Two ranks, three rounds: L=4 sends 98304 bytes; the slowest ranks take 10, 20 and 40 us.
Result example() {
  Result result{{{4, 4, 4, 4}, 8}, "hot", 1, {}};
  Column column;
  column.strategy = "concurrent";
  column.pages = "huge";
  column.chosen = "concurrent";
  column.us = {{10, 20, 30}, {5, 20, 40}};
  column.verified = true;
  result.columns.push_back(column);
  column.pages = "memalign";
  column.us = {{20, 40, 60}, {10, 40, 80}};
  result.columns.push_back(column);
  column.strategy = "limit";
  column.us = {{5, 5, 5}, {10, 10, 10}};
  result.columns.push_back(column);
  return result;
}

Context context() {
  Context one;
  one.ranks = 2;
  one.lanes = 1;
  one.mpi = "an MPI";
  one.rank_grid = {1, 1, 1, 2};
  one.backings["huge"].kind = "huge";
  one.backings["memalign"].kind = "memalign";
  return one;
}

TEST(Comms, RowsHaveMedianOfTheSlowestRank) {
  const auto all = rows(context(), example());
  ASSERT_EQ(all.size(), 2U);
  const Json& row = all[0];
  EXPECT_EQ(row["bytes"], 49152);
  EXPECT_EQ(row["time_us"]["median"], 20.0);
  EXPECT_EQ(row["limit_us"], 10.0);
  EXPECT_NEAR(row["uni_mb_per_s"]["median"].get<double>(), 98304.0 / 20, 0.1);
  EXPECT_NEAR(row["mb_per_s"].get<double>(), 2 * 98304.0 / 20, 0.1);
  EXPECT_NEAR(row["uni_mb_per_s"]["min"].get<double>(), 98304.0 / 40, 0.1);
  EXPECT_NEAR(row["uni_mb_per_s"]["max"].get<double>(), 98304.0 / 5, 0.1);
  EXPECT_EQ(row["line_rate_percent"], 50.0);
  EXPECT_EQ(row["verified"], true);
}

TEST(Comms, GivenLineRateIsOneWay) {
  Context one = context();
  one.line_rate_mb = 98304.0 / 20;
  EXPECT_EQ(rows(one, example())[0]["line_rate_percent"], 100.0);
  EXPECT_NE(paper_table(one, {example()}, "hot").find("line rate"), std::string::npos);
}

TEST(Comms, TablesShowBothWays) {
  const std::string paper = paper_table(context(), {example()}, "hot");
  EXPECT_NE(paper.find("concurrent/huge"), std::string::npos) << paper;
  EXPECT_NE(paper.find("9830.4"), std::string::npos) << paper;  // 2 x 98304 / 20
  EXPECT_EQ(paper.find("limit/"), std::string::npos) << paper;
  const std::string itt = itt_table(context(), {example()}, "hot", "concurrent", "huge");
  EXPECT_NE(itt.find("4915.2"), std::string::npos) << itt;
  EXPECT_NE(itt.find("9830.4"), std::string::npos) << itt;
  EXPECT_NE(summary(context(), {example()}).find("2.00 x memalign"), std::string::npos);
}

TEST(Comms, WrongDataShowsEverywhere) {
  Result result = example();
  result.columns[0].verified = false;
  result.columns[0].wrong = "rank 1: face";
  EXPECT_EQ(rows(context(), result)[0]["verified"], false);
  EXPECT_EQ(rows(context(), result)[0]["wrong"], "rank 1: face");
  EXPECT_NE(summary(context(), {result}).find("WRONG"), std::string::npos);
}

}  // namespace
}  // namespace ropewalk::bench
