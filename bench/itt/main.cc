// ropewalk-bench-itt: the report of Grid's Benchmark_ITT, on ropewalk's operators and exchange.
#include <fmt/format.h>

#include <memory>
#include <thread>

#include "common/main.hpp"
#include "common/timed_threads.hpp"
#include "itt/comms.hpp"
#include "itt/details.hpp"
#include "itt/operators.hpp"
#include "itt/options.hpp"
#include "itt/roofline.hpp"
#include "itt/rows.hpp"
#include "itt/tables.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::bench {
namespace {

// What was asked for, in the form in which Benchmark_ITT prints it.
std::string decomposition(const IttContext& context) {
  return fmt::format(
      "# Decomposition: ranks {} ({} a node as {}), {} node{}, {} thread{} and {} lane{} a rank, "
      "{} precision; L^4 is that of a {}\n",
      lattice::text(context.layout.rank_grid), context.layout.ranks_per_node,
      lattice::text(context.layout.in_node), context.layout.nodes(),
      context.layout.nodes() == 1 ? "" : "s", context.threads, context.threads == 1 ? "" : "s",
      context.options.lanes, context.options.lanes == 1 ? "" : "s", context.options.precision,
      context.layout.per_node ? "node" : "rank");
}

// What a table takes of the time, about; for the progress line.
struct Part {
  const char* table;
  double weight;
};
constexpr Part parts[] = {
    {"roofline", 1}, {"summary", 15}, {"memory", 3}, {"comms", 3}, {"operators", 22}};

constexpr double roofline_us = 1.5e6;
constexpr int level_samples = 5;
constexpr int peak_samples = 40;
constexpr int quick_peak_samples = 10;

class Itt {
 public:
  Itt(const IttOptions& options, const Ranks& ranks, Report& report)
      : options_(options),
        ranks_(ranks),
        report_(report),
        layout_(itt_layout(options, ranks.size(), static_cast<int>(ranks.max(ranks.node_size())))),
        team_(ranks.has_mpi() ? std::make_unique<ThreadTeam>(ranks.communicator(),
                                                             ThreadTeamOptions{options.threads})
                              : std::make_unique<ThreadTeam>(ThreadTeamOptions{options.threads})),
        bandwidth_(*team_, ranks),
        context_{options_, layout_, ranks_.library(), team_->size(), {}},
        memory_sizes_(has("memory") ? memory_sizes(options, ranks) : std::vector<int>()),
        budget_(options.common, ranks, expected()) {}

  void run() {
    report_.text(decomposition(context_));
    budget_.announce(report_);
    for (const std::string& note : layout_.notes) report_.text(fmt::format("# {}\n", note));
    if (has("roofline")) roofline();
    std::vector<OperatorResult> summary;
    if (has("summary")) summary = measure("summary", layout_.sizes, summary_specs());
    if (has("memory")) memory();
    if (has("comms")) comms();
    if (has("summary")) finish_summary(summary);
    if (has("operators")) operators();
    finish();
  }

 private:
  bool has(const std::string& table) const {
    if (table == "roofline") return options_.wants("summary") || options_.wants("operators");
    if (table == "comms") return options_.wants("comms") && ranks_.size() > 1;
    return options_.wants(table);
  }
  Share share(const std::string& table) const {
    double all = 0;
    Share mine;
    for (const Part& part : parts) {
      if (!has(part.table)) continue;
      if (table == part.table) mine = {all, part.weight};
      all += part.weight;
    }
    return {mine.begin / all, mine.width / all};
  }

  void roofline() {
    budget_.begin();
    report_.progress("roofline", share("roofline").begin);
    const int samples = options_.common.quick ? quick_peak_samples : peak_samples;
    peak_ = ranks_.sum(peak_gflops(*team_, options_.precision == "double", samples));
    levels_ = levels(caches(), team_->size(), layout_.ranks_per_node,
                     static_cast<int>(std::thread::hardware_concurrency()));
    agree_on_levels();
    for (Level& level : levels_) {
      for (int i = 0; i < level_samples; ++i) bandwidth_.sample(level.bytes);
      level.us = bandwidth_.pass_us(level.bytes);
      level.mb_per_s = bandwidth_.best_mb_per_s(level.bytes);
      report_.row(level_row(context_, level, peak_));
    }
    report_.text(roofline_table(context_, peak_, levels_));
  }

  // Ranks of unlike nodes and numbers of threads must measure alike.
  void agree_on_levels() {
    const double count = -ranks_.max(-static_cast<double>(levels_.size()));
    levels_.erase(levels_.begin(), levels_.end() - static_cast<std::ptrdiff_t>(count));
    for (Level& level : levels_) {
      level.capacity = ranks_.max(level.capacity);
      level.bytes = ranks_.max(level.bytes);
    }
  }

  std::vector<OperatorSpec> summary_specs() const {
    return {{"Wilson", lattice::Vectors::space, 1, true, false},
            {"DWF4", lattice::Vectors::space, options_.Ls, true, false},
            {"DWF5", lattice::Vectors::fifth, options_.Ls, true, false}};
  }

  // A row of several fields at once.
  std::string several(const std::string& name) const {
    return fmt::format("{} x {}", options_.fields, name);
  }

  // Tables V and VI of Boyle et al. 2017 have the first four, of Benchmark_dwf.
  std::vector<OperatorSpec> table_specs() const {
    using lattice::Vectors;
    return {{"D_w", Vectors::space, options_.Ls, false, false},
            {"D_w^eo", Vectors::space, options_.Ls, true, false},
            {"sD_w", Vectors::fifth, options_.Ls, false, false},
            {"sD_w^eo", Vectors::fifth, options_.Ls, true, false},
            {"Wilson D_w", Vectors::space, 1, false, false},
            {"Wilson D_w^eo", Vectors::space, 1, true, false},
            {several("D_w^eo"), Vectors::space, 1, true, false, options_.fields},
            {"clover MULT", Vectors::space, 1, true, true},
            {several("clover MULT"), Vectors::space, 1, true, true, options_.fields}};
  }

  // What each part will take, in the order of run().
  std::vector<Expected> expected() const {
    std::vector<Expected> all;
    const auto add = [&](const std::vector<int>& sizes, const std::vector<OperatorSpec>& specs) {
      for (const int L : sizes) {
        for (const OperatorSpec& spec : specs) {
          all.push_back(
              expected_operator(options_, layout_.local(L), ranks_.size(), team_->size(), spec));
        }
      }
    };
    if (has("roofline")) all.push_back({roofline_us, roofline_us});
    if (has("summary")) add(layout_.sizes, summary_specs());
    if (has("memory")) {
      for (const int L : memory_sizes_) all.push_back(expected_memory(options_, L));
    }
    if (has("comms")) {
      for (const int L : stencil_sizes(options_)) all.push_back(expected_stencil(options_, L));
    }
    if (has("operators")) add(layout_.volumes, table_specs());
    return all;
  }

  void finish_summary(const std::vector<OperatorResult>& summary) {
    report_.text(node_summary(context_, summary));
    point_ = comparison_point(context_, summary);
    report_.text(comparison_text(point_));
    if (point_.known) report_.row(comparison_row(context_, point_));
    report_.text(operator_table(context_, "Operators of the summary", summary));
  }

  // The volumes are those of the paper.
  void operators() {
    const auto results = measure("operators", layout_.volumes, table_specs());
    report_.text(volume_table(context_,
                              fmt::format("Tables V and VI of Boyle et al. 2017: Mflop/s per node, "
                                          "{} precision, Ls={}",
                                          options_.precision, options_.Ls),
                              {"D_w", "D_w^eo", "sD_w", "sD_w^eo"}, results));
    report_.text(volume_table(
        context_,
        fmt::format("Wilson (Ls=1) and MULT of CCS-QCD: Mflop/s per node, {} "
                    "precision",
                    options_.precision),
        {"Wilson D_w", "Wilson D_w^eo", several("D_w^eo"), "clover MULT", several("clover MULT")},
        results));
    report_.text(operator_table(context_, "Operators of these tables", results));
  }

  std::vector<OperatorResult> measure(const std::string& table, const std::vector<int>& sizes,
                                      const std::vector<OperatorSpec>& specs) {
    const OperatorContext context{options_, layout_, ranks_,     *team_, team_->size(),
                                  peak_,    levels_, bandwidth_, budget_};
    std::vector<OperatorResult> all;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const Share each = share(table).of(static_cast<int>(i), static_cast<int>(sizes.size()));
      const auto results = measure_operators(context, sizes[i], specs, report_, each);
      for (const OperatorResult& one : results) {
        if (one.cases.empty()) continue;
        report_.row(operator_row(context_, table, one));
        note(one.verified,
             fmt::format("{} L={}: relative error {:.1e}", one.spec.name, one.L, one.error));
      }
      all.insert(all.end(), results.begin(), results.end());
    }
    return all;
  }

  void memory() {
    const auto results =
        measure_memory(options_, ranks_, memory_sizes_, *team_, budget_, report_, share("memory"));
    for (const MemoryResult& one : results) {
      report_.row(memory_row(context_, one));
      note(one.verified, fmt::format("a*x+y L={}", one.L));
      fastest_gb_ = std::max(fastest_gb_, one.bytes / one.us.median / 1e3);
    }
    report_.text(memory_table(context_, results));
  }

  void comms() {
    const auto results = measure_stencil(options_, layout_, ranks_, budget_, report_,
                                         share("comms"), context_.pages);
    for (const StencilResult& one : results) {
      report_.row(stencil_row(context_, one));
      note(one.verified, fmt::format("stencil L={}: {}", one.L, one.wrong));
    }
    report_.text(stencil_table(context_, results));
    report_.text(stencil_details(results));
    report_.text(step_table(results));
    report_.text(fmt::format("pages {}\n", line(context_.pages)));
  }

  void note(bool verified, const std::string& what) {
    if (!verified && wrong_.empty()) wrong_ = what;
  }

  void finish() {
    const std::string point =
        point_.known ? fmt::format("comparison point {:.1f} Mflop/s per node (robustness {:.3f}); ",
                                   point_.mflops, point_.robustness)
                     : "";
    const std::string memory =
        fastest_gb_ > 0 ? fmt::format("a*x+y up to {:.1f} GB/s; ", fastest_gb_) : "";
    report_.summary(point + memory + (wrong_.empty() ? "all results verified" : "RESULTS WRONG"));
    if (!wrong_.empty()) throw CollectiveError(ErrorCode::internal, "itt: wrong: " + wrong_);
  }

  const IttOptions& options_;
  const Ranks& ranks_;
  Report& report_;
  IttLayout layout_;
  std::unique_ptr<ThreadTeam> team_;
  Bandwidth bandwidth_;
  IttContext context_;
  std::vector<int> memory_sizes_;
  Budget budget_;
  double peak_ = 0;
  std::vector<Level> levels_;
  double fastest_gb_ = 0;
  ComparisonPoint point_;
  std::string wrong_;
};

}  // namespace
}  // namespace ropewalk::bench

int main(int argc, char** argv) {
  using namespace ropewalk::bench;
  return run_main<IttOptions>(
      "Grid's Benchmark_ITT on ropewalk's lattice operators.", "ropewalk-bench-itt", Need::if_run,
      [](const IttOptions& options, const Ranks& ranks, Report& report) {
        Itt(options, ranks, report).run();
      },
      argc, argv);
}
