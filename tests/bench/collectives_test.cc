// Options, arithmetic, data and cost model of the benchmark of collectives.
#include <gtest/gtest.h>

#include <numeric>

#include "bench/command_line.hpp"
#include "collectives/data.hpp"
#include "collectives/model.hpp"
#include "collectives/options.hpp"
#include "collectives/shape.hpp"
#include "collectives/tables.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::bench {
namespace {

CollectivesBenchOptions collectives(std::vector<std::string> words) {
  return parse_words<CollectivesBenchOptions>("ropewalk-bench-collectives", std::move(words));
}

std::string refusal(const std::vector<std::string>& words) {
  return refusal_of([&] { collectives(words); });
}

TEST(Collectives, DefaultIsEveryCollective) {
  const CollectivesBenchOptions options = collectives({});
  EXPECT_EQ(options.op_list.back(), Op::reduce_scatter);  // without the forms ending in v
  EXPECT_EQ(options.size_list.front(), 4U);
  EXPECT_EQ(options.size_list.back(), std::size_t{64} << 20);
  EXPECT_EQ(options.buffer_list.size(), 2U);
  EXPECT_EQ(collectives({"--quick"}).buffer_list.size(), 1U);
  EXPECT_EQ(collectives({"--quick", "--buffers", "hot,rewritten"}).buffer_list.size(), 2U);
}

// Over a network there are more collectives, and no call of many seconds.
TEST(Collectives, DefaultOverANetworkEndsInMinutes) {
  setenv("ROPEWALK_LINE_RATE", "125", 1);
  const CollectivesBenchOptions options = collectives({});
  const CollectivesBenchOptions given = collectives({"--op", "bcast", "--sizes", "256M"});
  unsetenv("ROPEWALK_LINE_RATE");
  EXPECT_EQ(options.line_rate, 125);
  EXPECT_EQ(options.op_list.size(), op_names().size());
  EXPECT_EQ(options.buffer_list.size(), 1U);
  EXPECT_EQ(sizes_of(options, Op::allreduce, 8).back(), std::size_t{16} << 20);
  EXPECT_EQ(sizes_of(options, Op::alltoallv, 8).back(), std::size_t{1} << 20);
  EXPECT_EQ(sizes_of(options, Op::barrier, 8), std::vector<std::size_t>{0});
  EXPECT_EQ(given.op_list.size(), 1U);
  EXPECT_EQ(sizes_of(given, Op::alltoall, 8).back(), std::size_t{256} << 20);
}

TEST(Collectives, RefusalsNameTheOption) {
  EXPECT_NE(refusal({"--sizes", "6"}).find("--sizes: 6 bytes"), std::string::npos);
  EXPECT_NE(refusal({"--op", "allredcue"}).find("--op"), std::string::npos);
  EXPECT_NE(refusal({"--memory", "heap"}).find("--memory"), std::string::npos);
  EXPECT_NE(refusal({"--buffers", "cold"}).find("--buffers"), std::string::npos);
}

TEST(Collectives, NamesAndOpsAreOneToOne) {
  for (const std::string& word : op_names()) EXPECT_EQ(name(op_of(word)), word);
}

// What all ranks send is what all ranks receive, or a known multiple of it.
TEST(Collectives, BuffersOfAllRanksFitTogether) {
  constexpr int ranks = 3;
  for (const std::size_t bytes : {std::size_t{4}, std::size_t{28}, std::size_t{4096}}) {
    const auto total = [&](Op op, bool sent) {
      std::size_t sum = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const CallShape shape{op, bytes, ranks, rank};
        sum += sent ? shape.send_count() : shape.receive_count();
      }
      return sum;
    };
    const std::size_t n = bytes / sizeof(float);
    EXPECT_EQ(total(Op::alltoall, true), total(Op::alltoall, false));
    EXPECT_EQ(total(Op::gather, true), total(Op::gather, false));
    EXPECT_EQ(total(Op::scatter, true), total(Op::scatter, false));
    EXPECT_EQ(total(Op::allgather, false), ranks * total(Op::allgather, true));
    EXPECT_EQ(total(Op::reduce_scatter, false), n);
    EXPECT_EQ(total(Op::reduce, false), n);
    EXPECT_EQ(total(Op::bcast, false), (ranks - 1) * n);
    EXPECT_EQ(total(Op::allreduce, false), ranks * n);
  }
}

// The limit stores what the ranks receive; bcast's root has its data already.
TEST(Collectives, TrafficStoresWhatIsReceived) {
  constexpr int ranks = 4;
  constexpr std::size_t bytes = 4096;
  for (const std::string& word : op_names()) {
    std::size_t received = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      received += CallShape{op_of(word), bytes, ranks, rank}.receive_count() * sizeof(float);
    }
    if (op_of(word) == Op::barrier) received = 0;
    EXPECT_EQ(traffic(op_of(word), bytes, ranks).stored, received) << word;
  }
  // The allreduce is built on a lower bound of 2ps bytes.
  const TrafficBytes allreduce = traffic(Op::allreduce, bytes, ranks);
  EXPECT_EQ(allreduce.loaded + allreduce.stored, 2 * ranks * bytes);
}

// Counted by hand for 4 nodes of 2 ranks, and for nodes of 2, 1 and 3.
TEST(Collectives, LinkBytesAreThoseOfTheBusiestNode) {
  const std::vector<int> even = {2, 2, 2, 2};
  EXPECT_DOUBLE_EQ(link_bytes(Op::allreduce, 1000, even), 1500);
  EXPECT_DOUBLE_EQ(link_bytes(Op::reduce_scatter, 1000, even), 750);
  EXPECT_DOUBLE_EQ(link_bytes(Op::bcast, 1000, even), 1000);
  EXPECT_DOUBLE_EQ(link_bytes(Op::reduce, 1000, even), 1000);
  EXPECT_DOUBLE_EQ(link_bytes(Op::allgather, 1000, even), 6000);
  EXPECT_DOUBLE_EQ(link_bytes(Op::alltoallv, 1000, even), 12000);
  EXPECT_DOUBLE_EQ(link_bytes(Op::gather, 1000, even), 6000);
  const std::vector<int> uneven = {2, 1, 3};
  EXPECT_DOUBLE_EQ(link_bytes(Op::allgather, 1000, uneven), 5000);  // into the node of one rank
  EXPECT_DOUBLE_EQ(link_bytes(Op::alltoall, 1000, uneven), 9000);   // 3 x 3
  EXPECT_DOUBLE_EQ(link_bytes(Op::scatterv, 1000, uneven), 4000);
  EXPECT_DOUBLE_EQ(link_bytes(Op::reduce_scatter, 1200, uneven), 1000);
  EXPECT_DOUBLE_EQ(link_bytes(Op::allreduce, 1000, {4}), 0);  // one node has no link
  EXPECT_DOUBLE_EQ(link_bytes(Op::barrier, 0, even), 0);
}

TEST(Collectives, IterationsFillTheSample) {
  EXPECT_EQ(iterations_for(1, 5000), 5000);
  EXPECT_EQ(iterations_for(0.25, 5000), 20000);
  EXPECT_EQ(iterations_for(17000, 5000), 1);
  EXPECT_EQ(iterations_for(0, 5000), iterations_for(1e-9, 5000));
  // Calls of some microseconds are repeated a thousand times.
  EXPECT_GE(iterations_for(5, 5000), 1000);
}

// A buffer made by the definition of each collective is right; one element off is found.
TEST(Collectives, CheckFindsOneWrongElement) {
  constexpr int ranks = 2;
  constexpr unsigned serial = 5;
  const std::size_t n = 8;
  for (int rank = 0; rank < ranks; ++rank) {
    const CallShape sum{Op::allreduce, n * sizeof(float), ranks, rank};
    std::vector<float> result(n);
    for (std::size_t i = 0; i < n; ++i) result[i] = value(0, i, serial) + value(1, i, serial);
    EXPECT_EQ(check(sum, result.data(), serial, Filled::by_place), "");
    result[3] += 1;
    EXPECT_NE(check(sum, result.data(), serial, Filled::by_place).find("element 3 "),
              std::string::npos);

    const CallShape all{Op::alltoall, n * sizeof(float), ranks, rank};
    result.resize(ranks * n);
    for (std::size_t i = 0; i < ranks * n; ++i) {
      const std::size_t place = static_cast<std::size_t>(rank) * n + i % n;
      result[i] = value(static_cast<int>(i / n), place, serial);
    }
    EXPECT_EQ(check(all, result.data(), serial, Filled::by_place), "");
    EXPECT_NE(check(all, result.data(), serial + 1, Filled::by_place), "");
    std::swap(result[0], result[n]);
    EXPECT_NE(check(all, result.data(), serial, Filled::by_place), "");
    spoil(all, result.data());
    EXPECT_NE(check(all, result.data(), serial, Filled::by_place), "");
  }
}

TEST(Collectives, RewritingChangesWhatIsExpected) {
  const CallShape shape{Op::allgather, 16, 2, 0};
  std::vector<float> send(4);
  rewrite(shape, send.data(), 7);
  for (const float one : send) EXPECT_EQ(one, flat_value(0, 7));
  std::vector<float> receive(4, flat_value(0, 7));
  receive.resize(8, flat_value(1, 7));
  EXPECT_EQ(check(shape, receive.data(), 7, Filled::flat), "");
  EXPECT_NE(check(shape, receive.data(), 8, Filled::flat), "");
}

// The formula of the paper's slide is computed with m = 1, term by term.
TEST(CollectivesModel, IsTheFormulaOfThePaper) {
  const Model model{2.0, {{1024, 0.001, 0.003}}};
  const int p = 4;
  const double v = 1024;
  const double expected = 3 * 2.0 + 3 * (v / p) * 0.003 + 3 * (2.0 + 0.001 * (v / p));
  EXPECT_DOUBLE_EQ(predicted_us(model, Op::allreduce, 1024, p), expected);
  EXPECT_DOUBLE_EQ(predicted_us(model, Op::barrier, 0, p), 6.0);
  EXPECT_LT(predicted_us(model, Op::reduce, 1024, p), expected);
}

TEST(CollectivesModel, CostsBetweenMeasuredSizesAreInterpolated) {
  const Model model{0, {{1024, 1, 10}, {4096, 3, 30}}};
  EXPECT_DOUBLE_EQ(at(model, 4).copy_us, 1);
  EXPECT_DOUBLE_EQ(at(model, 1024).copy_us, 1);
  EXPECT_DOUBLE_EQ(at(model, 2048).copy_us, 2);
  EXPECT_DOUBLE_EQ(at(model, 2048).reduce_us, 20);
  EXPECT_DOUBLE_EQ(at(model, std::size_t{1} << 30).reduce_us, 30);
  EXPECT_DOUBLE_EQ(at(Model{}, 8).copy_us, 0);
}

CollectiveResult result_of(double plain, double ours, double limit) {
  CollectiveResult result;
  result.op = Op::allreduce;
  result.bytes = 65536;
  result.memory = "arena";
  result.buffers = "hot";
  result.plain = {plain, plain, plain};
  result.ropewalk = {ours, ours, ours};
  if (limit > 0) result.limit = {limit, limit, limit};
  result.path = "mapped";
  return result;
}

TEST(CollectivesTables, RowsSayWhatTheDesignAsksFor) {
  CollectivesContext context{2, "MPICH 5.0.2", {}, {2}, 0};
  context.backings["arena"] = BackingReport{};
  const Json with = row(context, result_of(30, 10, 8));
  EXPECT_EQ(with["bench"], "collectives");
  EXPECT_EQ(with["plain_us"], 30.0);
  EXPECT_EQ(with["ratio"], 3.0);
  EXPECT_EQ(with["limit_us"], 8.0);
  EXPECT_EQ(with["limit_ratio"], 1.25);
  EXPECT_EQ(with["time_us"]["n"], 3);
  EXPECT_EQ(with["verified"], true);
  EXPECT_FALSE(with.contains("predicted_us"));
  EXPECT_FALSE(row(context, result_of(30, 10, 0)).contains("limit_us"));
  CollectiveResult wrong = result_of(1, 2, 0);
  wrong.wrong = "element 3";
  EXPECT_EQ(row(context, wrong)["verified"], false);
  EXPECT_EQ(row(context, wrong)["wrong"], "element 3");
}

// Plain MPI and ropewalk alternate, so the ratio within a round says more than the ratio of two
// medians.
TEST(CollectivesTables, QuartilesAreOfTheRatiosOfEachRound) {
  CollectiveResult result = result_of(0, 0, 0);
  result.plain = {10, 20, 30, 40, 90};
  result.ropewalk = {10, 10, 10, 10, 10};
  EXPECT_EQ(ratio_quartiles(result).low, 2.0);
  EXPECT_EQ(ratio_quartiles(result).high, 4.0);
  CollectivesContext context{8, "MPICH 5.0.2", {}, {2, 2, 2, 2}, 125};
  context.backings["arena"] = BackingReport{};
  const Json json = row(context, result);
  EXPECT_EQ(json["ratio_quartiles"][1], 4.0);
  EXPECT_EQ(json["ranks_on_nodes"].size(), 4U);
  EXPECT_EQ(json["line_rate_mb_per_s"], 125.0);
}

TEST(CollectivesTables, SummaryIsTheGeometricMean) {
  const std::vector<CollectiveResult> results = {result_of(20, 10, 8), result_of(80, 10, 0)};
  const std::string text = summary(results);
  EXPECT_NE(text.find("allreduce 4.00"), std::string::npos) << text;
  EXPECT_NE(text.find("least 2.00"), std::string::npos) << text;
  EXPECT_NE(table(results).find("64 KiB"), std::string::npos);
}

}  // namespace
}  // namespace ropewalk::bench
