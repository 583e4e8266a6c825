// Tables beyond Grid's; see details.hpp.
#include "itt/details.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/parse.hpp"

namespace ropewalk::bench {
namespace {

std::string flops_text(const std::vector<OperatorResult>& results) {
  std::string text = fmt::format("{} flops a site and s-slice", hop_flops_a_site);
  for (const OperatorResult& one : results) {
    if (!one.spec.clover) continue;
    return text + fmt::format(", {} in MULT", one.spec.flops_a_site());
  }
  return text;
}

// value / by, where `by` is known to `least` at best: what lies below is that, and the quotient a
// bound.
std::string quotient(double value, double by, double least) {
  return fmt::format("{}{:.1f}", by < least ? "> " : "", value / std::max(by, least));
}

std::string step_us(const StepResult& step, const std::string& name) {
  for (const StepColumn& column : step.columns) {
    if (column.name == name) return fmt::format("{:.1f}", column.us.median);
  }
  return "-";
}

}  // namespace

std::string roofline_table(const IttContext& context, double peak_gflops,
                           const std::vector<Level>& levels) {
  TextTable table({"level", "set of a rank", "GB/s", "flop/B to reach the peak"}, 1);
  for (const Level& level : levels) {
    table.add({level.name, size_text(static_cast<std::size_t>(level.bytes)),
               fmt::format("{:.1f}", level.mb_per_s / 1e3),
               fmt::format("{:.2f}", peak_gflops / level.mb_per_s * 1e3)});
  }
  return fmt::format(
      "\nRoofline of the {} rank{}, {} precision: {:.1f} Gflop/s of multiply-adds and additions in "
      "registers;\nbytes of working sets that lie in each level, the best of reading and of z = a "
      "x "
      "+ y\n{}",
      context.layout.ranks, context.layout.ranks == 1 ? "" : "s", context.options.precision,
      peak_gflops, table.text());
}

std::string stencil_details(const std::vector<StencilResult>& results) {
  TextTable table({"L", "bytes", "by", "MB/s uni, median", "by MPI, median", "x MPI", "copy limit"},
                  3);
  for (const StencilResult& one : results) {
    table.add({std::to_string(one.L), std::to_string(one.bytes), one.strategy,
               fmt::format("{:.1f}", one.node_bytes / one.us.median),
               fmt::format("{:.1f}", one.node_bytes / one.plain_us.median),
               fmt::format("{:.2f}", one.plain_us.median / one.us.median),
               fmt::format("{:.2f}", one.plain_us.median / one.limit_us.median)});
  }
  return "\nMB/s are those of a node, uni: sent; bidi: sent and received. Messages inside the node "
         "are counted,\nGrid counts those between nodes only. By MPI: MPI_Isend, MPI_Irecv and "
         "MPI_Testall of one thread on\nthe same buffers, in turn; copy limit: x MPI of "
         "one copy of the same bytes by all ranks at once\n" +
         table.text();
}

std::string step_table(const std::vector<StencilResult>& results) {
  TextTable table({"L", "bytes", "limit us", "plain us", "direct us", "put us", "x MPI", "limit x",
                   "cost us: plain", "ours", "x MPI"});
  for (const StencilResult& one : results) {
    const StepResult& step = one.step;
    const double plain = step.cost_us(step.plain());
    const double ours = step.cost_us(step.best());
    const double sure = step.limit().us.median / 100;
    table.add({std::to_string(one.L), std::to_string(one.bytes), step_us(step, "limit"),
               step_us(step, "plain"), step_us(step, "direct"), step_us(step, "put"),
               fmt::format("{:.2f}", step.plain().us.median / step.best().us.median),
               fmt::format("{:.2f}", step.plain().us.median / step.limit().us.median),
               fmt::format("{:.1f}", plain), fmt::format("{:.1f}", ours),
               quotient(std::max(plain, sure), ours, sure)});
  }
  return "\nSteps of an application: faces are gathered, exchanged and read; slowest rank. Limit: "
         "the "
         "same gathering and\nreading in a rank's own memory. Cost: what a step takes beyond that, "
         "known to 1 % of the limit\n" +
         table.text();
}

std::string operator_table(const IttContext& context, const std::string& title,
                           const std::vector<OperatorResult>& results) {
  TextTable table({"operator", "L", "Ls", "case", "mean", "err", "min", "max", "median", "flop/B",
                   "MiB", "from", "roof", "%"},
                  1);
  const int ranks = context.layout.ranks;
  std::string left_out;
  for (const OperatorResult& one : results) {
    if (one.cases.empty()) {
      left_out += fmt::format("{} L={}: {}\n", one.spec.name, one.L, one.left_out);
      continue;
    }
    for (const OperatorCase& which : one.cases) {
      const double gflops = one.median_mflops(which) / 1e3;
      const double roof = one.roof_gflops(which, ranks);
      const MeanRate rate = mean_rate(one.flops / 1e3, which.us);
      table.add({one.spec.name, std::to_string(one.L), std::to_string(one.spec.Ls),
                 which.links + "/" + which.exchange, fmt::format("{:.1f}", rate.mean),
                 fmt::format("{:.1f}", one.error_mflops(which) / 1e3),
                 fmt::format("{:.1f}", rate.min), fmt::format("{:.1f}", rate.max),
                 fmt::format("{:.1f}", gflops), fmt::format("{:.2f}", one.intensity(which, ranks)),
                 fmt::format("{:.1f}", which.bytes / (1 << 20)), which.level,
                 fmt::format("{:.1f}", roof), fmt::format("{:.0f}", 100 * gflops / roof)});
    }
  }
  return fmt::format("\n{}: Gflop/s of all ranks, {} precision, by {}\n{}{}", title,
                     context.options.precision, flops_text(results), table.text(), left_out);
}

}  // namespace ropewalk::bench
