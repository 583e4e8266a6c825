// Tests options, segments and tables of the benchmark of gradient reduction.
#include <gtest/gtest.h>

#include <cstdlib>

#include "bench/command_line.hpp"
#include "gradient/options.hpp"
#include "gradient/rings.hpp"
#include "gradient/tables.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::bench {
namespace {

GradientOptions parsed(std::vector<std::string> words) {
  return parse_words<GradientOptions>("ropewalk-bench-gradient", std::move(words));
}

std::string refusal(const std::vector<std::string>& words) {
  return refusal_of([&] { parsed(words); });
}

TEST(Gradient, LengthsGoAsFarAsThePaper) {
  const auto lengths = parsed({}).length_list;
  EXPECT_EQ(lengths.front(), 1U);
  EXPECT_EQ(lengths.back(), std::size_t{1} << 28);
  EXPECT_EQ(parsed({"--quick"}).length_list.back(), std::size_t{1} << 22);
  EXPECT_EQ(parsed({"--lengths", "3,2K"}).length_list, (std::vector<std::size_t>{3, 2048}));
  EXPECT_EQ(parsed({"--lengths", "deepbench"}).length_list.size(), 7U);
}

TEST(Gradient, OptionsThatCannotBeAreRefused) {
  EXPECT_NE(refusal({"--lengths", "1G"}).find("at most 256M"), std::string::npos);
  EXPECT_NE(refusal({"--variants", "published,fast"}).find("--variants"), std::string::npos);
  setenv("ROPEWALK_LINE_RATE", "fast", 1);
  EXPECT_NE(refusal({}).find("ROPEWALK_LINE_RATE: 'fast'"), std::string::npos);
  setenv("ROPEWALK_LINE_RATE", "250", 1);
  EXPECT_EQ(parsed({}).line_rate, 250e6);
  unsetenv("ROPEWALK_LINE_RATE");
}

TEST(Gradient, TheImprovedRingHasTheAxesOfThePapersFirstFigure) {
  const GradientOptions made = parsed({"--pages", "huge,small", "--threads", "1,2,4,8"});
  EXPECT_EQ(made.page_list, (std::vector<std::string>{"huge", "small"}));
  EXPECT_EQ(made.thread_list, (std::vector<int>{1, 2, 4, 8}));
  EXPECT_TRUE(parsed({}).thread_list.empty());
  EXPECT_NE(refusal({"--pages", "large"}).find("--pages"), std::string::npos);
  EXPECT_NE(refusal({"--threads", "0"}).find("--threads"), std::string::npos);
  EXPECT_NE(refusal({"--threads", "65"}).find("--threads"), std::string::npos);
}

TEST(Gradient, SegmentsCoverTheVector) {
  for (const std::size_t count : {0, 1, 2, 5, 12, 1000}) {
    for (const int ranks : {1, 2, 3, 7}) {
      const Segments segments(count, ranks);
      std::size_t end = 0;
      for (int segment = 0; segment < ranks; ++segment) {
        EXPECT_EQ(segments.begin(segment), end);
        EXPECT_LE(segments.length(segment), segments.longest());
        end += segments.length(segment);
      }
      EXPECT_EQ(end, count);
    }
  }
}

GradientContext context(int ranks, int nodes, double line_rate) {
  GradientContext made;
  made.ranks = ranks;
  made.nodes = nodes;
  made.node_ranks = ranks / nodes;
  made.line_rate = line_rate;
  return made;
}

GradientResult result() {
  return {std::size_t{4} << 20,
          {{"published", 1, {4000, 5000, 4500}, {2000, 2000, 2000}, 0, ""},
           {"improved small 2", 1, {900, 900, 900}, {600, 600, 600}, 2, "small"},
           {"ropewalk", 1, {450, 440, 460}, {450, 440, 460}, 0, ""}},
          {},
          "mapped",
          ""};
}

TEST(Gradient, TheLimitOverNodesIsTheLineRates) {
  // The limit is 2 * 3/4 * 16 MiB at 100 MB/s.
  EXPECT_DOUBLE_EQ(limit_us(context(8, 4, 100e6), result()), 1.5 * 16 * 1048576 / 100);
  EXPECT_EQ(limit_us(context(8, 4, 0), result()), 0);
  EXPECT_EQ(limit_us(context(2, 1, 100e6), result()), 0);
  GradientResult measured = result();
  measured.limit = {300, 310, 290};
  EXPECT_EQ(limit_us(context(2, 1, 0), measured), 300);
}

TEST(Gradient, RowsHaveThePapersFigures) {
  const auto all = rows(context(2, 1, 0), result());
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0]["communication_percent"], 44.444);
  EXPECT_EQ(all[0]["other_us"], 2500);
  EXPECT_EQ(all[2]["times_published"], 10);
  EXPECT_EQ(all[1]["threads"], 2);
  EXPECT_EQ(all[1]["pages"], "small");
  EXPECT_FALSE(all[2].contains("threads"));
  // Each of two ranks moves 16 MiB each way in 2 ms; both directions are counted.
  EXPECT_NEAR(all[0]["mb_per_s"].get<double>(), 2 * 16 * 1.048576e6 / 2000, 1e-3);
}

TEST(Gradient, TheSummaryTellsWhatIsWrong) {
  const GradientContext here = context(2, 1, 0);
  EXPECT_EQ(summary(here, {result()}),
            "from 4M floats at least 10.0 x as fast as published; all data verified");
  GradientResult wrong = result();
  wrong.wrong = "element 3";
  EXPECT_NE(summary(here, {wrong}).find("RECEIVED DATA WRONG"), std::string::npos);
  EXPECT_NE(figures(here, {wrong}).find("WRONG"), std::string::npos);
}

}  // namespace
}  // namespace ropewalk::bench
