// Tables and rows of the ITT benchmark; see tables.hpp.
#include "itt/tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/parse.hpp"

namespace ropewalk::bench {
namespace {

const std::string double_rule(113, '=');

std::string heading(const std::string& text) {
  return fmt::format("{}\n {}\n{}\n", double_rule, text, double_rule);
}

double rounded(double value, double digits = 10) { return std::round(value * digits) / digits; }

Json common_row(const IttContext& context, const std::string& table, int L) {
  return {{"bench", "itt"},
          {"table", table},
          {"L", L},
          {"ranks", context.layout.ranks},
          {"nodes", context.layout.nodes()},
          {"mpi", context.mpi},
          {"mpi_grid", lattice::text(context.layout.rank_grid)},
          {"threads", context.threads},
          {"lanes", context.options.lanes},
          {"precision", context.options.precision},
          {"pages", "huge"},
          {"buffers", "hot"}};
}

Json rate_json(double value, const Summary& us) {
  return {{"mean", rounded(value / us.mean)},
          {"median", rounded(value / us.median)},
          {"error", rounded(value * us.error / us.mean / us.mean)},
          {"min", rounded(value / us.max)},
          {"max", rounded(value / us.min)}};
}

// X/mean, X err/mean^2, X/max and X/min.
std::string rate_cells(double value, const Summary& us) {
  return fmt::format("{:>10.1f} {:>7.1f} {:>8.1f} {:>8.1f}", value / us.mean,
                     value * us.error / us.mean / us.mean, value / us.max, value / us.min);
}

double per_node(const IttContext& context, double value) { return value / context.layout.nodes(); }

}  // namespace

Json memory_row(const IttContext& context, const MemoryResult& result) {
  Json row = common_row(context, "memory", result.L);
  row["op"] = "a*x+y";
  row["bytes"] = result.bytes;
  row["time_us"] = to_json(result.us);
  row["mb_per_s"] = rounded(result.bytes / result.us.median);
  row["gb_per_s"] = rate_json(result.bytes / 1e3, result.us);
  row["gflops"] = rounded(result.flops / result.us.median / 1e3, 100);
  row["verified"] = result.verified;
  return row;
}

Json stencil_row(const IttContext& context, const StencilResult& result) {
  Json row = common_row(context, "stencil", result.L);
  row["Ls"] = result.Ls;
  row["bytes"] = result.bytes;
  row["strategy"] = "automatic";
  row["path"] = result.strategy;
  row["page_backing"] = to_json(context.pages);
  row["time_us"] = to_json(result.us);
  row["plain_us"] = result.plain_us.median;
  row["mb_per_s"] = rounded(2 * result.node_bytes / result.us.median);
  row["uni_mb_per_s"] = rate_json(result.node_bytes, result.us);
  row["bidi_mb_per_s"] = rate_json(2 * result.node_bytes, result.us);
  row["ratio"] = rounded(result.plain_us.median / result.us.median, 1000);
  row["verified"] = result.verified;
  return row;
}

Json operator_row(const IttContext& context, const std::string& table,
                  const OperatorResult& result) {
  Json row = common_row(context, table, result.L);
  const OperatorCase& best = result.best();
  const double roof = result.roof_gflops(context.layout.ranks);
  row["op"] = result.spec.name;
  row["Ls"] = result.spec.Ls;
  row["vectors"] = lattice::name(result.spec.vectors);
  row["local"] = lattice::text(result.local);
  row["flops"] = result.flops;
  row["flops_a_site"] = 1344;
  row["isa"] = result.isa;
  row["strategy"] = result.strategy;
  row["time_us"] = to_json(best.us);
  row["mb_per_s"] = rounded(result.bytes * context.layout.ranks / best.us.median);
  row["gflops"] = rounded(result.median_mflops(best) / 1e3, 100);
  row["mflops"] = rate_json(result.flops, best.us);
  row["links"] = best.links;
  row["exchange"] = best.exchange;
  for (const OperatorCase& one : result.cases) {
    row["cases"][one.links + "/" + one.exchange] = {{"time_us", to_json(one.us)},
                                                    {"mflops", rate_json(result.flops, one.us)}};
  }
  row["robustness"] = rounded(result.robustness(), 1000);
  row["intensity"] = rounded(result.intensity(context.layout.ranks), 100);
  row["peak_gflops"] = rounded(result.peak_gflops);
  row["bandwidth_mb_per_s"] = rounded(result.bandwidth_mb);
  row["roof_gflops"] = rounded(roof);
  row["roof_percent"] = rounded(100 * result.median_mflops(best) / 1e3 / roof);
  row["error"] = result.error;
  row["verified"] = result.verified;
  return row;
}

std::string memory_table(const IttContext& context, const std::vector<MemoryResult>& results) {
  std::string text = "\n" + heading("Memory benchmark") +
                     fmt::format("= Benchmarking a*x + y bandwidth\n{}\n", double_rule) +
                     "  L             bytes                   GB/s            Gflop/s          "
                     "seconds                GB/s / node      GB/s median\n" +
                     std::string(58, '-') + "\n";
  for (const MemoryResult& one : results) {
    text += fmt::format("{:<15d} {:<23.3f} {:<15.3f} {:<16.3f} {:<22.3f} {:<16.3f} {:.3f}\n", one.L,
                        one.bytes, one.bytes / one.us.mean / 1e3, one.flops / one.us.mean / 1e3,
                        one.us.mean * one.passes / 1e6,
                        per_node(context, one.bytes / one.us.mean / 1e3),
                        one.bytes / one.us.median / 1e3);
  }
  return text;
}

std::string stencil_table(const IttContext& context, const std::vector<StencilResult>& results) {
  int divided = 0;
  for (const int extent : context.layout.rank_grid) divided += extent > 1 ? 1 : 0;
  std::string text =
      "\n" + heading("Communications benchmark") +
      fmt::format("= Benchmarking threaded STENCIL halo exchange in {} dimensions\n", divided) +
      "= MB/s per node, messages within the node counted; uni: sent, bidi: sent and received\n" +
      double_rule + "\n" +
      fmt::format("{:<7} {:<7} {:<10} {:<38} {:<40} {:<11} {:>10} {:>8}\n", " L", "Ls", "bytes",
                  "MB/s uni (err/min/max)", "MB/s bidi (err/min/max)", "by", "uni median", "x MPI");
  for (const StencilResult& one : results) {
    text += fmt::format("{:<7d} {:<7d} {:<10d} {} {:>40} {:<11} {:>10.1f} {:>8.2f}\n", one.L,
                        one.Ls, one.bytes, rate_cells(one.node_bytes, one.us),
                        rate_cells(2 * one.node_bytes, one.us), one.strategy,
                        one.node_bytes / one.us.median, one.plain_us.median / one.us.median);
  }
  return text +
         "x MPI: median time of MPI_Isend, MPI_Irecv and MPI_Testall of one thread on the "
         "same buffers, over ours\n";
}

std::string node_summary(const IttContext& context, const std::vector<OperatorResult>& results) {
  std::string text = "\n" +
                     heading(fmt::format("Per Node Summary table Ls={}", context.options.Ls)) +
                     " L               Wilson          DWF4            DWF5\n";
  for (const int L : context.options.sizes) {
    text += fmt::format("{:<17d}", L);
    for (const char* name : {"Wilson", "DWF4", "DWF5"}) {
      const auto found =
          std::find_if(results.begin(), results.end(), [&](const OperatorResult& one) {
            return one.L == L && one.spec.name == name && !one.cases.empty();
          });
      text += fmt::format(
          "{:<16}", found == results.end()
                        ? "-"
                        : fmt::format("{:.1f}", per_node(context, found->mflops(found->best()))));
    }
    text += "\n";
  }
  return text + double_rule + "\n";
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
  point.L = at.L;
  point.below = below.L;
  point.at = per_node(context, at.mflops(at.best()));
  point.at_below = per_node(context, below.mflops(below.best()));
  point.mflops = 0.5 * (point.at + point.at_below);
  point.robustness = at.robustness();
  return point;
}

std::string comparison_text(const ComparisonPoint& point) {
  if (!point.known) return " Comparison point: needs DWF4 for two L, as 12 and 16\n";
  return fmt::format(
      "{}\n Comparison point     result: {:.1f} Mflop/s per node\n Comparison point is "
      "0.5*({:.1f}+{:.1f}){}\n Comparison point robustness: {:.3f}\n{}\n",
      double_rule, point.mflops, point.at, point.at_below,
      point.L == 16 && point.below == 12 ? ""
                                         : fmt::format(", of L={} and L={}", point.L, point.below),
      point.robustness, double_rule);
}

std::string operator_table(const IttContext& context, const std::string& title,
                           const std::vector<OperatorResult>& results) {
  Table table({"operator", "L", "local", "Ls", "case", "Gflop/s mean", "err", "min", "max",
               "median", "flop/B", "roof", "% of roof"},
              1);
  std::string left_out;
  for (const OperatorResult& one : results) {
    if (one.cases.empty()) {
      left_out += fmt::format("{} L={}: {}\n", one.spec.name, one.L, one.left_out);
      continue;
    }
    for (const OperatorCase& which : one.cases) {
      const double gflops = one.median_mflops(which) / 1e3;
      const double roof = one.roof_gflops(context.layout.ranks);
      const Summary& us = which.us;
      table.add({one.spec.name, std::to_string(one.L), lattice::text(one.local),
                 std::to_string(one.spec.Ls), which.links + "/" + which.exchange,
                 fmt::format("{:.2f}", one.flops / us.mean / 1e3),
                 fmt::format("{:.2f}", one.flops * us.error / us.mean / us.mean / 1e3),
                 fmt::format("{:.2f}", one.flops / us.max / 1e3),
                 fmt::format("{:.2f}", one.flops / us.min / 1e3), fmt::format("{:.2f}", gflops),
                 fmt::format("{:.2f}", one.intensity(context.layout.ranks)),
                 fmt::format("{:.1f}", roof), fmt::format("{:.0f}", 100 * gflops / roof)});
    }
  }
  return fmt::format(
      "\n{}: Gflop/s of all ranks, 1344 flops a site and s-slice, {} precision; roof: the least of "
      "measured peak\nand flop/B (links and input read once, output written once) times the "
      "bandwidth measured for as many bytes\n{}{}",
      title, context.options.precision, table.text(), left_out);
}

}  // namespace ropewalk::bench
