// Options, layouts, formulas and checks of the ITT benchmark.
#include <gtest/gtest.h>

#include <algorithm>

#include "itt/fields.hpp"
#include "itt/options.hpp"
#include "itt/roofline.hpp"
#include "itt/tables.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::bench {
namespace {

using lattice::Extents;

IttOptions parsed(std::vector<std::string> words) {
  IttOptions options;
  CLI::App app("test", "ropewalk-bench-itt");
  describe(app, options);
  std::reverse(words.begin(), words.end());  // as CLI11 takes them
  app.parse(words);
  check(options);
  return options;
}

std::string refusal(const std::vector<std::string>& words, int ranks = 2, int per_node = 2) {
  try {
    itt_layout(parsed(words), ranks, per_node);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::argument);
    return error.what();
  }
  return "accepted";
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

// The line "8 50331648.000 4371.720" of the source document: 64 ranks, in double precision.
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
  result.spec = {name, lattice::Vectors::space, 16, true};
  result.L = L;
  result.flops = flops;
  result.bytes = flops / 8;
  result.peak_gflops = 100;
  result.bandwidth_mb = 20000;
  for (const auto& times : us) result.cases.push_back({"full", "overlap", summarize(times)});
  return result;
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
  EXPECT_DOUBLE_EQ(result.intensity(1), 8);
  EXPECT_DOUBLE_EQ(result.roof_gflops(1), 100);
  result.bandwidth_mb = 5000;
  EXPECT_DOUBLE_EQ(result.roof_gflops(1), 40);
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
double error_of(lattice::Vectors vectors, int Ls, bool spoil) {
  const lattice::Lattice lattice({4, 4, 4, 8});
  const lattice::Layout layout(lattice, sizeof(Real), vectors, Ls);
  lattice::HoppingTerm<Real> hop(known_gauge<Real>(lattice), layout);
  lattice::SpinorField<Real> in(layout, lattice::Sites::odd);
  lattice::SpinorField<Real> out(layout, lattice::Sites::even);
  fill_known(in);
  hop.hop(out, in);
  if (spoil) *out.at(layout.place({0, 0, 0, 0}).vector) += Real(0.1);
  return hop_error(out);
}

TEST(Itt, ChecksFindAWrongNumber) {
  EXPECT_LT(error_of<double>(lattice::Vectors::space, 1, false), 1e-13);
  EXPECT_LT(error_of<float>(lattice::Vectors::fifth, 16, false), 1e-5);
  EXPECT_GT(error_of<float>(lattice::Vectors::space, 1, true), 1e-3);
}

TEST(Itt, LoopsOfTheRooflineDoWhatTheyCount) {
  std::vector<float> ones(1000, 1.0F);
  EXPECT_FLOAT_EQ(read_all(ones.data(), 1000), 960);  // whole vectors only
  EXPECT_GT(multiply_adds(10, true), 0);
  EXPECT_GE(flops_a_round(false), 2 * flops_a_round(true));
}

}  // namespace
}  // namespace ropewalk::bench
