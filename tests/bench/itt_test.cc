// Options, layouts, formulas and checks of the ITT benchmark.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

#include "bench/command_line.hpp"
#include "itt/fields.hpp"
#include "itt/options.hpp"
#include "itt/roofline.hpp"
#include "itt/rows.hpp"
#include "itt/tables.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::bench {
namespace {

using lattice::Extents;

IttOptions parsed(std::vector<std::string> words) {
  return parse_words<IttOptions>("ropewalk-bench-itt", std::move(words));
}

std::string refusal(const std::vector<std::string>& words, int ranks = 2, int per_node = 2) {
  return refusal_of([&] { itt_layout(parsed(words), ranks, per_node); });
}

TEST(Itt, ANodesRanksAreABlockOfTheGrid) {
  const IttLayout layout = itt_layout(parsed({"--mpi-grid", "2.2.2.4"}), 32, 4);
  EXPECT_EQ(layout.in_node, (Extents{2, 2, 1, 1}));
  EXPECT_EQ(layout.nodes(), 8);
  EXPECT_EQ(layout.local(16), (Extents{8, 8, 16, 16}));
  EXPECT_EQ(layout.global(16), (Extents{16, 16, 32, 64}));
  EXPECT_EQ(itt_layout(parsed({"--mpi-grid", "1.1.1.2"}), 2, 2).in_node, (Extents{1, 1, 1, 2}));
  EXPECT_EQ(itt_layout(parsed({"--mpi-grid", "1.1.3.2", "--L", "12"}), 6, 6).local(12),
            (Extents{12, 12, 4, 6}));
}

TEST(Itt, AVolumeMayBeThatOfARank) {
  const IttLayout layout = itt_layout(parsed({"--mpi-grid", "1.1.1.2", "--volume", "rank"}), 2, 2);
  EXPECT_EQ(layout.local(8), (Extents{8, 8, 8, 8}));
  EXPECT_EQ(layout.global(8), (Extents{8, 8, 8, 16}));
}

TEST(Itt, RefusalsNameWhatDoesNotFit) {
  EXPECT_NE(refusal({"--mpi-grid", "1.1.1.3"}).find("makes 3 ranks"), std::string::npos);
  EXPECT_NE(refusal({"--L", "7"}).find("write 8"), std::string::npos);
  EXPECT_NE(refusal({"--L", "6", "--mpi-grid", "2.1.1.1"}).find("dimension x"), std::string::npos);
  EXPECT_EQ(refusal({"--L", "6", "--mpi-grid", "2.1.1.1", "--volume", "rank"}), "accepted");
  EXPECT_NE(refusal({"--mpi-grid", "2.1.1.2"}, 4, 3).find("start a multiple of 3"),
            std::string::npos);
  EXPECT_NE(refusal({"--tables", "all"}).find("--tables"), std::string::npos);
}

// The line "8 50331648.000 4371.720" of the source document is for 64 ranks in double precision.
TEST(Itt, MemoryBytesAreThoseOfTheReport) {
  EXPECT_DOUBLE_EQ(memory_bytes(8, 64, true), 50331648);
  EXPECT_DOUBLE_EQ(memory_bytes(48, 64, true), 65229815808);
  EXPECT_DOUBLE_EQ(memory_bytes(8, 1, false), 393216);
  // Its Gflop/s are GB/s times 2 vol 8 / 3 vol 8 8: a twelfth.
  EXPECT_DOUBLE_EQ(memory_flops(8, 64) * 12, memory_bytes(8, 64, true));
}

OperatorResult operator_result(const std::string& name, int L, double flops,
                               const std::vector<std::vector<double>>& us) {
  OperatorResult result;
  result.spec = {name, lattice::Vectors::space, 16, true, false};
  result.L = L;
  result.flops = flops;
  result.peak_gflops = 100;
  result.verified = true;
  for (const auto& times : us) {
    result.cases.push_back({"full", "overlap", summarize(times), flops / 8, "L3", 20000});
  }
  return result;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string words_of(const std::string& line) {
  std::istringstream stream(line);
  std::string words;
  for (std::string word; stream >> word;) words += (words.empty() ? "" : " ") + word;
  return words;
}

// Returns times whose Summary has exactly this mean, error, least and most, as Grid's table shows
// them.
Summary summary_of(double value, double mean, double error, double least, double most) {
  Summary us;
  us.n = 200;
  us.mean = us.median = value / mean;
  us.error = error * us.mean * us.mean / value;
  us.max = value / least;
  us.min = value / most;
  return us;
}

// These are lines of the output in the source document (HPC-X 2.0 and Grid), 64 ranks on 16 nodes.
struct Published {
  IttOptions options = parsed({"--mpi-grid", "2.2.4.4"});
  IttLayout layout = itt_layout(options, 64, 4);
  IttContext context{options, layout, "MPI", 1, {}};
};

TEST(Itt, MemoryTableIsLaidOutAsThePublishedOne) {
  const Published at;
  std::vector<MemoryResult> results(2);
  results[0].L = 8;
  results[0].bytes = memory_bytes(8, 64, true);
  results[0].flops = memory_flops(8, 64);
  results[0].us = summarize({50331648.000 / 4371719.7});
  results[0].passes = 129600;
  results[1].L = 48;
  results[1].bytes = memory_bytes(48, 64, true);
  results[1].flops = memory_flops(48, 64);
  results[1].us = summarize({65229815808.000 / 2801425.0});
  results[1].passes = 100;
  const std::vector<std::string> lines = lines_of(memory_table(at.context, results));
  ASSERT_EQ(lines.size(), 11U);
  const std::string rule(113, '=');
  EXPECT_EQ(lines[1], rule);
  EXPECT_EQ(lines[2], " Memory benchmark");
  EXPECT_EQ(lines[3], rule);
  EXPECT_EQ(lines[4], rule);
  EXPECT_EQ(lines[5], "= Benchmarking a*x + y bandwidth");
  EXPECT_EQ(lines[6], rule);
  EXPECT_EQ(lines[7],
            "  L             bytes                   GB/s            Gflop/s          seconds     "
            "           GB/s / node");
  EXPECT_EQ(lines[8], std::string(58, '-'));
  EXPECT_EQ(words_of(lines[9]), "8 50331648.000 4371.720 364.310 1.492 273.232");
  // The document has 2.329 seconds and 175.089: of more passes than 100 x 48^4 / L^4.
  EXPECT_EQ(words_of(lines[10]), "48 65229815808.000 2801.425 233.452 2.328 175.089");
}

TEST(Itt, StencilTableIsLaidOutAsThePublishedOne) {
  const Published at;
  std::vector<StencilResult> results(2);
  results[0].L = 4;
  results[0].bytes = 49152;
  results[0].node_bytes = 1e6;
  results[0].us = summary_of(1e6, 1472.6, 178.3, 88.9, 2531.4);
  results[1].L = 32;
  results[1].bytes = 25165824;
  results[1].node_bytes = 1e6;
  results[1].us = summary_of(1e6, 9320.1, 47.7, 4917.7, 9949.8);
  for (StencilResult& one : results) one.plain_us = one.us;
  const std::vector<std::string> lines = lines_of(stencil_table(at.context, results));
  ASSERT_EQ(lines.size(), 10U);
  EXPECT_EQ(lines[2], " Communications benchmark");
  EXPECT_EQ(lines[3], std::string(114, '='));
  EXPECT_EQ(lines[5], "= Benchmarking threaded STENCIL halo exchange in 4 dimensions");
  EXPECT_EQ(lines[7],
            " L       Ls     bytes      MB/s uni (err/min/max)               MB/s bidi "
            "(err/min/max)");
  EXPECT_EQ(lines[8],
            "4       8       49152       1472.6  178.3 88.9 2531.4            2945.2  356.6 177.8 "
            "5062.8");
  EXPECT_EQ(lines[9],
            "32      8       25165824    9320.1  47.7 4917.7 9949.8          18640.2  95.4 9835.4 "
            "19899.6");
}

TEST(Itt, SummaryIsLaidOutAsThePublishedOne) {
  const IttOptions options = parsed({});
  const IttLayout layout = itt_layout(options, 1, 1);
  const IttContext context{options, layout, "MPI", 1, {}};
  std::vector<OperatorResult> results;
  const auto add = [&](int L, double wilson, double wall4, double wall5) {
    results.push_back(operator_result("Wilson", L, wilson, {{1}}));
    results.push_back(operator_result("DWF4", L, wall4, {{1}, {1 / 0.819}}));
    results.push_back(operator_result("DWF5", L, wall5, {{1}}));
  };
  add(8, 3895.6, 33637.9, 35835.8);
  add(12, 13308.6, 74021.3, 91408.2);
  add(16, 35034.3, 85631.9, 114475.0);
  add(24, 76632.2, 98933.4, 133285.8);
  const std::string rule(114, '=');
  EXPECT_EQ(node_summary(context, results),
            "\n" + rule + "\n Per Node Summary table Ls=16\n" + rule +
                "\n L               Wilson          DWF4            DWF5\n"
                "8                3895.6          33637.9         35835.8\n"
                "12               13308.6         74021.3         91408.2\n"
                "16               35034.3         85631.9         114475.0\n"
                "24               76632.2         98933.4         133285.8\n" +
                rule + "\n");
  EXPECT_EQ(comparison_text(comparison_point(context, results)),
            rule +
                "\n Comparison point     result: 79826.6 Mflop/s per node\n"
                " Comparison point is 0.5*(85631.9+74021.3)\n"
                " Comparison point robustness: 0.819\n" +
                std::string(82, '=') + "\n");
}

TEST(Itt, TablesOfVolumesHaveAColumnForEachOperator) {
  const Published at;
  const std::vector<OperatorResult> results = {operator_result("D_w", 12, 16 * 153595.0, {{1}}),
                                               operator_result("sD_w", 12, 16 * 218260.0, {{1}}),
                                               operator_result("D_w", 16, 16 * 207006.0, {{1}})};
  const auto lines = lines_of(volume_table(at.context, "Table V", {"D_w", "sD_w"}, results));
  ASSERT_EQ(lines.size(), 8U);
  EXPECT_EQ(lines[4], "Local vol       D_w             sD_w");
  EXPECT_EQ(words_of(lines[5]), "12^4 153595.0 218260.0");
  EXPECT_EQ(words_of(lines[6]), "16^4 207006.0 -");
}

// By hand: means 2 and 4 us, 1000 and 500 Mflop/s, robustness 0.5; 0.5 (1000 + 3000) / 2 nodes.
TEST(Itt, ComparisonPointIsHalfOfTwoVolumes) {
  const IttOptions options = parsed({"--mpi-grid", "1.1.1.2"});
  const IttLayout layout = itt_layout(options, 2, 1);
  const IttContext context{options, layout, "MPI", 1, {}};
  const std::vector<OperatorResult> results = {operator_result("Wilson", 12, 1, {{1}}),
                                               operator_result("DWF4", 12, 9000, {{3}}),
                                               operator_result("DWF4", 16, 2000, {{1, 3}, {4, 4}}),
                                               operator_result("DWF4", 24, 2000, {{1}})};
  const ComparisonPoint point = comparison_point(context, results);
  ASSERT_TRUE(point.known);
  EXPECT_EQ(point.L, 16);
  EXPECT_DOUBLE_EQ(point.at, 500);
  EXPECT_DOUBLE_EQ(point.at_below, 1500);
  EXPECT_DOUBLE_EQ(point.mflops, 1000);
  EXPECT_DOUBLE_EQ(point.robustness, 0.5);
  EXPECT_NE(comparison_text(point).find("0.5*(500.0+1500.0)\n"), std::string::npos);
  EXPECT_FALSE(comparison_point(context, {results[1]}).known);
}

// 8 flops a byte at 20 GB/s are 160 Gflop/s; the peak of 100 is less.
TEST(Itt, TheRoofIsTheLowerOfTwo) {
  OperatorResult result = operator_result("DWF4", 8, 4000, {{2}});
  OperatorCase& only = result.cases.front();
  EXPECT_DOUBLE_EQ(result.intensity(only, 1), 8);
  EXPECT_DOUBLE_EQ(result.roof_gflops(only, 1), 100);
  EXPECT_TRUE(result.bound_by_peak(only, 1));
  only.bandwidth_mb = 5000;
  EXPECT_DOUBLE_EQ(result.roof_gflops(only, 1), 40);
  EXPECT_FALSE(result.bound_by_peak(only, 1));
}

// There are two cores with 1 MiB each, and 32 MiB for both.
TEST(Itt, LevelsOfAWorkingSet) {
  const std::vector<CoreCache> caches = {
      {1, "Data", 32 << 10, "0"}, {2, "Unified", 1 << 20, "0"}, {3, "Unified", 32 << 20, "0-1"}};
  const auto level = [&](double bytes, int threads, int ranks) {
    return level_of(levels(caches, threads, ranks, 2), bytes).name;
  };
  EXPECT_EQ(level(30e3, 1, 1), "L1");
  EXPECT_EQ(level(60e3, 1, 1), "L2");
  EXPECT_EQ(level(60e3, 2, 1), "L1");
  EXPECT_EQ(level(1.5e6, 1, 1), "L3") << "Wilson at L = 8, one thread";
  EXPECT_EQ(level(1.5e6, 2, 1), "L2");
  EXPECT_EQ(level(20e6, 1, 1), "L3");
  EXPECT_EQ(level(20e6, 1, 2), "memory") << "the other rank has as much";
  EXPECT_EQ(level(40e6, 2, 1), "memory");
}

TEST(Itt, BandwidthIsThatOfTheNearestMeasuredSize) {
  const Ranks ranks(Need::if_run, false);
  ThreadTeam team(ThreadTeamOptions{1});
  Bandwidth bandwidth(team, ranks);
  EXPECT_EQ(bandwidth.best_mb_per_s(1e5), 0);
  bandwidth.sample(1e5);
  bandwidth.sample(1e4);
  EXPECT_GT(bandwidth.best_mb_per_s(1e5), 0);
  EXPECT_GT(bandwidth.best_mb_per_s(1e4), 0);
  EXPECT_EQ(bandwidth.pass_us(1e4).n, 1U);
  EXPECT_EQ(bandwidth.best_mb_per_s(5e5), 0);
}

// By hand: mean 2, error of the mean sqrt(2 / (2 x 1)) = 1, least 1, most 3.
TEST(Itt, RatesAreThoseOfGrid) {
  const Summary us = summarize({1, 3});
  const MeanRate rate = mean_rate(1200, us);
  EXPECT_DOUBLE_EQ(rate.mean, 600);
  EXPECT_DOUBLE_EQ(rate.error, 300);  // X err / mean^2
  EXPECT_DOUBLE_EQ(rate.min, 400);
  EXPECT_DOUBLE_EQ(rate.max, 1200);
  const OperatorResult result = operator_result("Wilson", 8, 1200, {{1, 3}});
  EXPECT_DOUBLE_EQ(result.error_mflops(result.cases.front()), 600);  // X / min err / mean
}

TEST(Itt, StencilRatesAreThoseOfTheNode) {
  const IttOptions options = parsed({"--mpi-grid", "1.1.1.2"});
  const IttLayout layout = itt_layout(options, 2, 2);
  StencilResult result;
  result.L = 4;
  result.node_bytes = 200;
  result.us = summarize({1, 3});
  result.plain_us = summarize({4});
  const Json row = stencil_row({options, layout, "MPI", 1, {}}, result);
  EXPECT_DOUBLE_EQ(row["uni_mb_per_s"]["mean"], 100);
  EXPECT_DOUBLE_EQ(row["bidi_mb_per_s"]["mean"], 200);
  EXPECT_DOUBLE_EQ(row["ratio"], 2);
}

TEST(Itt, DefaultVolumesThatCannotBeDividedAreLeftOut) {
  const IttLayout layout = itt_layout(parsed({"--mpi-grid", "1.1.1.3"}), 3, 3);
  EXPECT_EQ(layout.sizes, (std::vector<int>{12, 24}));
  EXPECT_EQ(layout.volumes, (std::vector<int>{12, 24}));
  ASSERT_EQ(layout.notes.size(), 3U);  // 8 and 16 of the summary, 16 of the tables of volumes
  EXPECT_NE(layout.notes.front().find("8 cannot be divided"), std::string::npos);
  EXPECT_NE(refusal({"--mpi-grid", "1.1.1.5"}, 5, 5).find("--L: 8"), std::string::npos);
}

// This is the command line of the source document.
TEST(Itt, TakesGridsOptions) {
  const IttOptions options =
      parsed({"--mpi", "1.1.1.2", "--shm", "2048", "--threads", "2", "--shm-hugetlb"});
  EXPECT_EQ(options.extents, (std::vector<int>{1, 1, 1, 2}));
  EXPECT_EQ(options.shm, 2048);
  EXPECT_EQ(options.threads, 2);
}

TEST(Itt, SummaryHasALineForEachVolume) {
  const IttOptions options = parsed({"--L", "8,16"});
  const IttLayout layout = itt_layout(options, 1, 1);
  const std::string text =
      node_summary({options, layout, "", 1, {}}, {operator_result("DWF4", 16, 2000, {{2}})});
  EXPECT_NE(text.find("8                -"), std::string::npos);
  EXPECT_NE(text.find("16               -               1000.0"), std::string::npos);
}

// One process, all sites its own: the operators against the sums written out.
template <class Real>
double error_of(lattice::Vectors vectors, int Ls, Real spoil) {
  const lattice::Lattice lattice({4, 4, 4, 8});
  const lattice::Layout layout(lattice, sizeof(Real), vectors, Ls);
  lattice::HoppingTerm<Real> hop(known_gauge<Real>(lattice), layout);
  lattice::SpinorField<Real> in(layout, lattice::Sites::odd);
  lattice::SpinorField<Real> out(layout, lattice::Sites::even);
  fill_known(in);
  hop.hop(out, in);
  *out.at(layout.place({0, 0, 0, 0}).vector) += spoil;
  return hop_error(out);
}

TEST(Itt, ChecksFindAWrongNumber) {
  EXPECT_LT(error_of<double>(lattice::Vectors::space, 1, 0), 1e-13);
  EXPECT_LT(error_of<float>(lattice::Vectors::fifth, 16, 0), 1e-5);
  EXPECT_GT(error_of<float>(lattice::Vectors::space, 1, 0.1F), 1e-3);
  const double none = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(std::isinf(error_of<double>(lattice::Vectors::space, 1, none)));
}

TEST(Itt, TheLargerErrorIsInfiniteWhereOneIsNoNumber) {
  const double none = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(larger_error(1e-3, 1e-5), 1e-3);
  EXPECT_EQ(larger_error(1e-5, 1e-3), 1e-3);
  EXPECT_TRUE(std::isinf(larger_error(none, 1e-3)));
  EXPECT_TRUE(std::isinf(larger_error(1e-3, none)));
}

TEST(Itt, LoopsOfTheRooflineDoWhatTheyCount) {
  std::vector<float> ones(1000, 1.0F);
  EXPECT_FLOAT_EQ(read_all(ones.data(), 1000), 960);  // whole vectors only
  for (const Arithmetic which : {Arithmetic::multiply_adds, Arithmetic::two_to_one_addition}) {
    EXPECT_GT(arithmetic(which, 10, true), 0);
    EXPECT_DOUBLE_EQ(flops_a_round(which, false), 2 * flops_a_round(which, true));
  }
}

}  // namespace
}  // namespace ropewalk::bench
