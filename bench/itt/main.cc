// ropewalk-bench-itt: the report of Grid's Benchmark_ITT, on ropewalk's operators and exchange.
#include <fmt/format.h>

#include <memory>

#include "itt/comms.hpp"
#include "itt/operators.hpp"
#include "itt/options.hpp"
#include "itt/roofline.hpp"
#include "itt/tables.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::bench {
namespace {

// As Benchmark_ITT prints what it was asked for.
std::string decomposition(const IttContext& context) {
  return fmt::format(
      "# Decomposition: ranks {} ({} a node as {}), {} node{}, {} thread{} and {} lane{} a rank, "
      "{} "
      "precision; L^4 is that of a {}\n",
      lattice::text(context.layout.rank_grid), context.layout.ranks_per_node,
      lattice::text(context.layout.in_node), context.layout.nodes(),
      context.layout.nodes() == 1 ? "" : "s", context.threads, context.threads == 1 ? "" : "s",
      context.options.lanes, context.options.lanes == 1 ? "" : "s", context.options.precision,
      context.layout.per_node ? "node" : "rank");
}

class Itt {
 public:
  Itt(const IttOptions& options, const Ranks& ranks, Report& report)
      : options_(options), ranks_(ranks), report_(report) {
    layout_ = itt_layout(options, ranks.size(), static_cast<int>(ranks.max(ranks.node_size())));
    team_ = ranks.has_mpi() ? std::make_unique<ThreadTeam>(ranks.communicator(),
                                                           ThreadTeamOptions{options.threads})
                            : std::make_unique<ThreadTeam>(ThreadTeamOptions{options.threads});
  }

  void run() {
    IttContext context{options_, layout_, ranks_.library(), team_->size(), {}};
    report_.text(decomposition(context));
    std::vector<OperatorResult> summary;
    if (options_.wants("summary") || options_.wants("operators")) {
      peak_ = ranks_.sum(peak_gflops(*team_, options_.precision == "double"));
    }
    if (options_.wants("summary")) summary = summary_operators(context);
    if (options_.wants("memory")) memory(context);
    if (options_.wants("comms") && ranks_.size() > 1) comms(context);
    if (options_.wants("summary")) {
      report_.text(operator_table(context, "Operators of the summary", summary));
      report_.text(node_summary(context, summary));
      point_ = comparison_point(context, summary);
      report_.text(comparison_text(point_));
    }
    if (options_.wants("operators")) five_dimensional(context);
    finish();
  }

 private:
  OperatorContext operators() const {
    return {options_, layout_, ranks_, *team_, team_->size(), peak_};
  }

  std::vector<OperatorResult> summary_operators(const IttContext& context) {
    const std::vector<OperatorSpec> specs = {{"Wilson", lattice::Vectors::space, 1, true},
                                             {"DWF4", lattice::Vectors::space, options_.Ls, true},
                                             {"DWF5", lattice::Vectors::fifth, options_.Ls, true}};
    return measure(context, "summary", options_.sizes, specs, 0.2, 0.4);
  }

  // Tables V and VI of Boyle et al. 2017 have these operators and volumes.
  void five_dimensional(const IttContext& context) {
    const std::vector<OperatorSpec> specs = {
        {"D_w", lattice::Vectors::space, 1, false},
        {"D_w^eo", lattice::Vectors::space, 1, true},
        {"sD_w", lattice::Vectors::fifth, options_.Ls, false},
        {"sD_w^eo", lattice::Vectors::fifth, options_.Ls, true}};
    std::vector<int> sizes;
    for (const int L : options_.common.quick ? std::vector<int>{8} : std::vector<int>{12, 16, 24}) {
      try {
        layout_.local(L);
        sizes.push_back(L);
      } catch (const Error& error) {
        report_.text(fmt::format("# {}\n", error.what()));
      }
    }
    const auto results = measure(context, "operators", sizes, specs, 0.6, 0.4);
    report_.text(operator_table(context, "D_w and its s-vectorised form", results));
  }

  std::vector<OperatorResult> measure(const IttContext& context, const std::string& table,
                                      const std::vector<int>& sizes,
                                      const std::vector<OperatorSpec>& specs, double share,
                                      double share_all) {
    std::vector<OperatorResult> all;
    for (const int L : sizes) {
      const double each = share_all / static_cast<double>(sizes.size());
      const auto results = measure_operators(operators(), L, specs, report_, share, each);
      share += each;
      for (const OperatorResult& one : results) {
        if (one.cases.empty()) continue;
        report_.row(operator_row(context, table, one));
        note(one.verified,
             fmt::format("{} L={}: relative error {:.1e}", one.spec.name, L, one.error));
      }
      all.insert(all.end(), results.begin(), results.end());
    }
    return all;
  }

  void memory(const IttContext& context) {
    const auto results = measure_memory(options_, ranks_, *team_, report_);
    for (const MemoryResult& one : results) {
      report_.row(memory_row(context, one));
      note(one.verified, fmt::format("a*x+y L={}", one.L));
      fastest_gb_ = std::max(fastest_gb_, one.bytes / one.us.median / 1e3);
    }
    report_.text(memory_table(context, results));
  }

  void comms(IttContext& context) {
    const auto results = measure_stencil(options_, layout_, ranks_, report_, context.pages);
    report_.text(fmt::format("# pages {}\n", line(context.pages)));
    for (const StencilResult& one : results) {
      report_.row(stencil_row(context, one));
      note(one.verified, fmt::format("stencil L={}: {}", one.L, one.wrong));
    }
    report_.text(stencil_table(context, results));
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
    if (!wrong_.empty()) throw JointError(ErrorCode::internal, "itt: wrong: " + wrong_);
  }

  const IttOptions& options_;
  const Ranks& ranks_;
  Report& report_;
  IttLayout layout_;
  std::unique_ptr<ThreadTeam> team_;
  double peak_ = 0;
  double fastest_gb_ = 0;
  ComparisonPoint point_;
  std::string wrong_;
};

}  // namespace
}  // namespace ropewalk::bench

int main(int argc, char** argv) {
  using namespace ropewalk::bench;
  IttOptions options;
  CLI::App app("Grid's Benchmark_ITT on ropewalk's lattice operators.", "ropewalk-bench-itt");
  describe(app, options);
  const Program program{
      &app, &options.common, Need::if_run, [&] { return check(options); },
      [&](const Ranks& ranks, Report& report) { Itt(options, ranks, report).run(); }};
  return run(program, argc, argv);
}
