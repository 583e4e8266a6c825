// Tables and rows of the overlap benchmark; see tables.hpp.
#include "overlap/tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/parse.hpp"
#include "common/statistics.hpp"

namespace ropewalk::bench {
namespace {

double rounded(double value, double digits) { return std::round(value * digits) / digits; }

double limit(const OverlapResult& result) {
  return std::max(result.median(Way::compute), result.median(Way::exchange));
}

double rate_of(const OverlapResult& result, Way way) {
  return mb_per_s(static_cast<double>(result.exchange_bytes), result.median(way));
}

}  // namespace

Json overlap_row(const OverlapContext& context, const OverlapResult& result) {
  const auto samples = [&](Way way) { return summarize(result.us[static_cast<std::size_t>(way)]); };
  Json row = {{"bench", "overlap"},
              {"work", "stencil"},
              {"L", result.L},
              {"ranks", context.ranks},
              {"mpi", context.mpi},
              {"mpi_grid", dotted(context.rank_grid)},
              {"threads", context.threads},
              {"comm_threads", result.comm_threads},
              {"lanes", result.lanes},
              {"strategy", name(result.strategy)},
              {"passes", context.passes},
              {"pages", "huge"},
              {"buffers", "hot"},
              {"exchange_bytes", result.exchange_bytes},
              {"iterations", result.iterations},
              {"compute_us", rounded(result.median(Way::compute), 100)},
              {"exchange_us", rounded(result.median(Way::exchange), 100)},
              {"sequential_us", rounded(result.median(Way::one_after_other), 100)},
              {"time_us", to_json(samples(Way::overlapped))},
              {"limit_us", rounded(limit(result), 100)},
              {"hidden_percent", rounded(100 * result.hidden(), 10)},
              {"gain", rounded(result.gain(), 1000)},
              {"computed_by_comm_threads", rounded(result.stolen, 1000)},
              {"gflops", rounded(flops_a_site * result.sites * context.passes /
                                     result.median(Way::overlapped) / 1e3,
                                 100)},
              {"mb_per_s", rounded(rate_of(result, Way::overlapped), 10)},
              {"exchange_mb_per_s", rounded(rate_of(result, Way::exchange), 10)},
              {"verified", result.verified}};
  if (!result.verified) row["wrong"] = result.wrong;
  return row;
}

std::string overlap_table(const OverlapContext& context,
                          const std::vector<OverlapResult>& results) {
  if (results.empty()) return "";
  Table table({"comm threads", "compute us", "exchange us", "one after other", "overlapped",
               "limit", "hidden %", "gain", "comm computes %", "exchange MB/s", "overlapped MB/s"});
  for (const OverlapResult& one : results) {
    table.add({fmt::format("{}", one.comm_threads), fmt::format("{:.1f}", one.median(Way::compute)),
               fmt::format("{:.1f}", one.median(Way::exchange)),
               fmt::format("{:.1f}", one.median(Way::one_after_other)),
               fmt::format("{:.1f}", one.median(Way::overlapped)),
               fmt::format("{:.1f}", limit(one)), fmt::format("{:.0f}", 100 * one.hidden()),
               fmt::format("{:.2f}", one.gain()), fmt::format("{:.0f}", 100 * one.stolen),
               fmt::format("{:.1f}", rate_of(one, Way::exchange)),
               fmt::format("{:.1f}", rate_of(one, Way::overlapped))});
  }
  const OverlapResult& first = results.front();
  return fmt::format(
      "\nL = {}, {}: {} ranks x {} thread{}, {} lane{}, {} sent by a rank, {:.0f} sites of {:.0f} "
      "flops computed{}\n{}",
      first.L, name(first.strategy), context.ranks, context.threads,
      context.threads == 1 ? "" : "s", first.lanes, first.lanes == 1 ? "" : "s",
      size_text(first.exchange_bytes), first.sites, flops_a_site,
      context.passes > 1 ? fmt::format(" {} times", context.passes) : "", table.text());
}

std::string overlap_summary(const std::vector<OverlapResult>& results) {
  if (results.empty()) return "nothing could be measured here";
  const auto by_gain = [](const OverlapResult& a, const OverlapResult& b) {
    return a.gain() < b.gain();
  };
  const auto best = std::max_element(results.begin(), results.end(), by_gain);
  const auto worst = std::min_element(results.begin(), results.end(), by_gain);
  const bool verified = std::all_of(results.begin(), results.end(),
                                    [](const OverlapResult& one) { return one.verified; });
  return fmt::format(
      "overlap up to {:.2f} x exchange and then compute ({} with {} comm threads, L={}, {:.0f} % "
      "hidden), at least {:.2f} x; {}",
      best->gain(), name(best->strategy), best->comm_threads, best->L, 100 * best->hidden(),
      worst->gain(), verified ? "all data verified" : "DATA WRONG");
}

}  // namespace ropewalk::bench
