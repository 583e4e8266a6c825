// Rows of the JSON file; see rows.hpp.
#include "itt/rows.hpp"

#include <cmath>

#include "common/parse.hpp"

namespace ropewalk::bench {
namespace {

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
  const MeanRate rate = mean_rate(value, us);
  return {{"mean", rounded(rate.mean)},
          {"median", rounded(value / us.median)},
          {"error", rounded(rate.error)},
          {"min", rounded(rate.min)},
          {"max", rounded(rate.max)}};
}

Json case_json(const OperatorResult& result, const OperatorCase& one, int ranks) {
  const double roof = result.roof_gflops(one, ranks);
  Json mflops = rate_json(result.flops, one.us);
  mflops["error"] = rounded(result.error_mflops(one));
  return {{"time_us", to_json(one.us, Means::yes)},
          {"mflops", mflops},
          {"gflops", rounded(result.median_mflops(one) / 1e3, 100)},
          {"bytes_a_rank", one.bytes},
          {"intensity", rounded(result.intensity(one, ranks), 1000)},
          {"level", one.level},
          {"bandwidth_mb_per_s", rounded(one.bandwidth_mb)},
          {"roof_gflops", rounded(roof)},
          {"roof_by", result.bound_by_peak(one, ranks) ? "peak" : one.level},
          {"roof_percent", rounded(100 * result.median_mflops(one) / 1e3 / roof)}};
}

}  // namespace

Json memory_row(const IttContext& context, const MemoryResult& result) {
  Json row = common_row(context, "memory", result.L);
  row["op"] = "a*x+y";
  row["bytes"] = result.bytes;
  row["flops"] = result.flops;
  row["passes"] = result.passes;
  row["time_us"] = to_json(result.us, Means::yes);
  row["mb_per_s"] = rounded(result.bytes / result.us.median);
  row["gb_per_s"] = rate_json(result.bytes / 1e3, result.us);
  row["gflops"] = rounded(result.flops / result.us.median / 1e3, 100);
  row["seconds"] = result.seconds();
  row["verified"] = result.verified;
  return row;
}

Json stencil_row(const IttContext& context, const StencilResult& result) {
  Json row = common_row(context, "stencil", result.L);
  row["Ls"] = result.Ls;
  row["bytes"] = result.bytes;
  row["node_bytes"] = result.node_bytes;
  row["strategy"] = "automatic";
  row["path"] = result.strategy;
  row["page_backing"] = to_json(context.pages);
  row["time_us"] = to_json(result.us, Means::yes);
  row["plain_us"] = result.plain_us.median;
  row["mb_per_s"] = rounded(2 * result.node_bytes / result.us.median);
  row["uni_mb_per_s"] = rate_json(result.node_bytes, result.us);
  row["bidi_mb_per_s"] = rate_json(2 * result.node_bytes, result.us);
  row["ratio"] = rounded(result.plain_us.median / result.us.median, 1000);
  row["limit_us"] = result.limit_us.median;
  for (const StepColumn& one : result.step.columns) {
    row["step"][one.name] = {{"time_us", to_json(one.us)},
                             {"stores", name(one.stores)},
                             {"cost_us", rounded(result.step.cost_us(one), 1000)}};
  }
  row["verified"] = result.verified;
  return row;
}

Json operator_row(const IttContext& context, const std::string& table,
                  const OperatorResult& result) {
  Json row = common_row(context, table, result.L);
  const int ranks = context.layout.ranks;
  const OperatorCase& best = result.best();
  row.update(case_json(result, best, ranks));
  row["op"] = result.spec.name;
  row["Ls"] = result.spec.Ls;
  row["fields"] = result.spec.fields;
  row["vectors"] = lattice::name(result.spec.vectors);
  row["vector_lanes"] = result.vector_lanes;
  row["local"] = lattice::text(result.local);
  row["flops"] = result.flops;
  row["flops_a_site"] = result.spec.flops_a_site();
  row["isa"] = result.isa;
  row["strategy"] = result.strategy;
  row["mb_per_s"] = rounded(best.bytes * ranks / best.us.median);
  row["mflops_per_node"] = rounded(result.mflops(best) / context.layout.nodes());
  row["links"] = best.links;
  row["exchange"] = best.exchange;
  for (const OperatorCase& one : result.cases) {
    row["cases"][one.links + "/" + one.exchange] = case_json(result, one, ranks);
  }
  row["robustness"] = rounded(result.robustness(), 1000);
  row["peak_gflops"] = rounded(result.peak_gflops);
  row["error"] = result.error;
  row["verified"] = result.verified;
  return row;
}

Json level_row(const IttContext& context, const Level& level, double peak_gflops) {
  Json row = common_row(context, "roofline", 0);
  row.erase("L");
  row["level"] = level.name;
  row["bytes_a_rank"] = level.bytes;
  row["time_us"] = to_json(level.us, Means::yes);
  row["mb_per_s"] = rounded(level.mb_per_s);
  row["peak_gflops"] = rounded(peak_gflops);
  row["verified"] = true;
  return row;
}

Json comparison_row(const IttContext& context, const ComparisonPoint& point) {
  Json row = common_row(context, "comparison", point.L);
  row["op"] = "DWF4";
  row["time_us"] = to_json(point.us, Means::yes);
  row["mb_per_s"] = rounded(point.mb_per_s);
  row["mflops_per_node"] = rounded(point.mflops);
  row["of"] = {rounded(point.at), rounded(point.at_below)};
  row["L_below"] = point.below;
  row["robustness"] = rounded(point.robustness, 1000);
  row["verified"] = point.verified;
  return row;
}

}  // namespace ropewalk::bench
