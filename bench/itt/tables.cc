// Tables of the ITT benchmark; see tables.hpp.
#include "itt/tables.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ropewalk::bench {
namespace {

// Columns are as wide as Grid's.
const std::string memory_rule(113, '=');
const std::string rule(114, '=');
const std::string last_rule(82, '=');

std::string heading(const std::string& text, const std::string& line) {
  return fmt::format("{}\n {}\n{}\n", line, text, line);
}

// mean, error, least and most.
std::string rate_cells(double value, const Summary& us) {
  const MeanRate rate = mean_rate(value, us);
  return fmt::format("{:>7.1f}  {:.1f} {:.1f} {:.1f}", rate.mean, rate.error, rate.min, rate.max);
}

double per_node(const IttContext& context, double value) { return value / context.layout.nodes(); }

std::string without_trailing_blanks(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

// Shows Mflop/s per node of an operator at L; "-" where it was not measured.
std::string node_mflops(const IttContext& context, const std::vector<OperatorResult>& results,
                        const std::string& name, int L) {
  const auto found = std::find_if(results.begin(), results.end(), [&](const OperatorResult& one) {
    return one.L == L && one.spec.name == name && !one.cases.empty();
  });
  if (found == results.end()) return "-";
  return fmt::format("{:.1f}", per_node(context, found->mflops(found->best())));
}

}  // namespace

std::string memory_table(const IttContext& context, const std::vector<MemoryResult>& results) {
  std::string text =
      "\n" + heading("Memory benchmark", memory_rule) +
      fmt::format("{}\n= Benchmarking a*x + y bandwidth\n{}\n", memory_rule, memory_rule) +
      "  L             bytes                   GB/s            Gflop/s          seconds"
      "                GB/s / node\n" +
      std::string(58, '-') + "\n";
  for (const MemoryResult& one : results) {
    const double gb_per_s = one.bytes / one.us.mean / 1e3;
    text += fmt::format("{:<15d} {:<23.3f} {:<15.3f} {:<16.3f} {:<22.3f} {:.3f}\n", one.L,
                        one.bytes, gb_per_s, one.flops / one.us.mean / 1e3, one.seconds(),
                        per_node(context, gb_per_s));
  }
  return text;
}

std::string stencil_table(const IttContext& context, const std::vector<StencilResult>& results) {
  int divided = 0;
  for (const int extent : context.layout.rank_grid) divided += extent > 1 ? 1 : 0;
  std::string text = "\n" + heading("Communications benchmark", rule) +
                     fmt::format(
                         "{}\n= Benchmarking threaded STENCIL halo exchange in {} "
                         "dimensions\n{}\n L       Ls     bytes      MB/s uni "
                         "(err/min/max)               MB/s bidi (err/min/max)\n",
                         rule, divided, rule);
  for (const StencilResult& one : results) {
    text += fmt::format("{:<7d} {:<7d} {:<11d}{:<36} {}\n", one.L, one.Ls, one.bytes,
                        rate_cells(one.node_bytes, one.us), rate_cells(2 * one.node_bytes, one.us));
  }
  return text;
}

std::string node_summary(const IttContext& context, const std::vector<OperatorResult>& results) {
  std::string text =
      "\n" + heading(fmt::format("Per Node Summary table Ls={}", context.options.Ls), rule) +
      " L               Wilson          DWF4            DWF5\n";
  for (const int L : context.layout.sizes) {
    std::string line = fmt::format("{:<17d}", L);
    for (const char* name : {"Wilson", "DWF4", "DWF5"}) {
      line += fmt::format("{:<16}", node_mflops(context, results, name, L));
    }
    text += without_trailing_blanks(line) + "\n";
  }
  return text + rule + "\n";
}

ComparisonPoint comparison_point(const IttContext& context,
                                 const std::vector<OperatorResult>& results) {
  std::vector<const OperatorResult*> walls;
  for (const OperatorResult& one : results) {
    if (one.spec.name == "DWF4" && !one.cases.empty()) walls.push_back(&one);
  }
  ComparisonPoint point;
  std::size_t selected = walls.size();
  for (std::size_t i = 1; i < walls.size(); ++i) {
    if (walls[i]->L == 16 && walls[i - 1]->L == 12) selected = i;
  }
  if (selected == walls.size()) selected = walls.empty() ? 0 : walls.size() - 1;
  if (selected == 0) return point;
  const OperatorResult& at = *walls[selected];
  const OperatorResult& below = *walls[selected - 1];
  point.known = true;
  point.verified = at.verified && below.verified;
  point.L = at.L;
  point.below = below.L;
  point.at = per_node(context, at.mflops(at.best()));
  point.at_below = per_node(context, below.mflops(below.best()));
  point.mflops = 0.5 * (point.at + point.at_below);
  point.robustness = at.robustness();
  point.us = at.best().us;
  point.mb_per_s = at.best().bytes * context.layout.ranks / point.us.median;
  return point;
}

std::string comparison_text(const ComparisonPoint& point) {
  if (!point.known) return " Comparison point: needs DWF4 for two L, as 12 and 16\n";
  const std::string sizes = point.L == 16 && point.below == 12
                                ? ""
                                : fmt::format(", of L={} and L={}", point.L, point.below);
  return fmt::format(
      "{}\n Comparison point     result: {:.1f} Mflop/s per node\n Comparison point is "
      "0.5*({:.1f}+{:.1f}){}\n Comparison point robustness: {:.3f}\n{}\n",
      rule, point.mflops, point.at, point.at_below, sizes, point.robustness, last_rule);
}

std::string volume_table(const IttContext& context, const std::string& title,
                         const std::vector<std::string>& operators,
                         const std::vector<OperatorResult>& results) {
  std::string text = "\n" + heading(title, rule) + "Local vol       ";
  for (const std::string& name : operators) text += fmt::format("{:<16}", name);
  text = without_trailing_blanks(text) + "\n";
  std::vector<int> sizes;
  for (const OperatorResult& one : results) {
    if (std::find(sizes.begin(), sizes.end(), one.L) == sizes.end()) sizes.push_back(one.L);
  }
  for (const int L : sizes) {
    std::string line = fmt::format("{:<16}", fmt::format("{}^4", L));
    for (const std::string& name : operators) {
      line += fmt::format("{:<16}", node_mflops(context, results, name, L));
    }
    text += without_trailing_blanks(line) + "\n";
  }
  return text + rule + "\n";
}

}  // namespace ropewalk::bench
