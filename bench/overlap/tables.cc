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

bool has_regions(const OverlapResult& result) {
  return !result.us[static_cast<std::size_t>(Way::regions)].empty();
}

double rate_of(const OverlapResult& result, Way way) {
  return mb_per_s(static_cast<double>(result.exchange_bytes), result.median(way));
}

std::string cpu(const OverlapResult& result) {
  return result.cpu_us.empty() ? "-" : fmt::format("{:.1f}", summarize(result.cpu_us).median);
}

// Where hardly anything can be hidden, a share of it says nothing.
std::string of_hideable(const OverlapResult& result) {
  const bool enough = result.hideable_us() > 0.05 * result.median(Way::overlapped);
  if (result.cpu_us.empty() || !enough) return "-";
  return fmt::format("{:.0f}", 100 * result.hidden_of_hideable());
}

}  // namespace

Json overlap_row(const OverlapContext& context, const OverlapResults& all,
                 const OverlapResult& result) {
  const auto samples = [&](Way way) { return summarize(result.us[static_cast<std::size_t>(way)]); };
  Json row = {
      {"bench", "overlap"},
      {"operator", result.op},
      {"L", result.L},
      {"Ls", result.Ls},
      {"local", lattice::text(result.local)},
      {"precision", context.precision},
      {"ranks", context.ranks},
      {"nodes", context.nodes},
      {"mpi", context.mpi},
      {"mpi_grid", lattice::text(result.rank_grid)},
      {"threads", context.threads},
      {"comm_threads", result.comm_threads},
      {"lanes", result.lanes},
      {"faces", result.faces()},
      {"evenly_dealt", evenly_dealt(result.faces(), result.lanes, result.comm_threads)},
      {"strategy", name(result.strategy)},
      {"face_precision", lattice::name(result.face_precision)},
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
      {"exchange_cpu_us", rounded(summarize(result.cpu_us).median, 100)},
      {"exchange_system_us", rounded(result.system_us, 100)},
      {"softirq_us", rounded(result.softirq_us, 100)},
      {"hideable_us", rounded(result.hideable_us(), 100)},
      {"hidden_of_hideable_percent", rounded(100 * result.hidden_of_hideable(), 10)},
      {"gain", rounded(result.gain(), 1000)},
      {"alone_us", rounded(summarize(all.alone.alone_us).median, 100)},
      {"together_us", rounded(summarize(all.alone.together_us).median, 100)},
      {"weak_scaling", rounded(all.scaling(result), 1000)},
      {"weak_scaling_limit", rounded(all.scaling_limit(), 1000)},
      {"gflops", rounded(result.flops * context.ranks / result.median(Way::overlapped) / 1e3, 100)},
      {"mb_per_s", rounded(rate_of(result, Way::overlapped), 10)},
      {"exchange_mb_per_s", rounded(rate_of(result, Way::exchange), 10)},
      {"error", result.error},
      {"verified", result.verified}};
  if (has_regions(result)) row["regions_us"] = rounded(result.median(Way::regions), 100);
  return row;
}

namespace {

std::vector<std::string> case_cells(const OverlapResult& one) {
  return {lattice::text(one.rank_grid), name(one.strategy), lattice::name(one.face_precision),
          std::to_string(one.comm_threads)};
}

std::string tenths(double value) { return fmt::format("{:.1f}", value); }
std::string hundredths(double value) { return fmt::format("{:.2f}", value); }

void add(TextTable& table, std::vector<std::string> cells, const std::vector<std::string>& more) {
  cells.insert(cells.end(), more.begin(), more.end());
  table.add(std::move(cells));
}

// This is Meadows' first figure, with the share of it that is exchange.
TextTable times_table(const OverlapResults& all) {
  TextTable table(
      {"rank grid", "strategy", "faces", "comm threads", "compute", "exchange", "one after other",
       "overlapped", "regions", "waits", "limit", "hidden %", "gain"},
      3);
  for (const OverlapResult& one : all.cases) {
    add(table, case_cells(one),
        {tenths(one.median(Way::compute)), tenths(one.median(Way::exchange)),
         tenths(one.median(Way::one_after_other)), tenths(one.median(Way::overlapped)),
         has_regions(one) ? tenths(one.median(Way::regions)) : "-",
         tenths(summarize(one.waited_us).median), tenths(limit(one)),
         fmt::format("{:.0f}", 100 * one.hidden()), hundredths(one.gain())});
  }
  return table;
}

// This is his second figure, the bandwidth.
TextTable rates_table(const OverlapResults& all) {
  TextTable table({"rank grid", "strategy", "faces", "comm threads", "exchange MB/s",
                   "overlapped MB/s", "weak scaling", "of it CPU", "of hideable"},
                  3);
  for (const OverlapResult& one : all.cases) {
    add(table, case_cells(one),
        {tenths(rate_of(one, Way::exchange)), tenths(rate_of(one, Way::overlapped)),
         hundredths(all.scaling(one)), cpu(one), of_hideable(one)});
  }
  return table;
}

// Says for which comm threads a longer exchange is to be expected, each once.
std::string uneven_notes(const OverlapResults& all) {
  std::string notes;
  for (const OverlapResult& one : all.cases) {
    if (evenly_dealt(one.faces(), one.lanes, one.comm_threads)) continue;
    const std::string note =
        fmt::format("note: {} comm threads cannot share the {} faces of rank grid {} evenly\n",
                    one.comm_threads, one.faces(), lattice::text(one.rank_grid));
    if (notes.find(note) == std::string::npos) notes += note;
  }
  return notes;
}

}  // namespace

std::string overlap_table(const OverlapContext& context, const OverlapResults& all) {
  if (all.cases.empty()) return "";
  const TextTable times = times_table(all);
  const TextTable rates = rates_table(all);
  const OverlapResult& first = all.cases.front();
  return fmt::format(
      "\n{}, {} precision, {} a rank, Ls = {}: {} ranks x {} thread{}, {} lane{}, {} sent by a "
      "rank\n"
      "in a hop of {:.1f} Mflop. One rank alone {:.1f} us, all at once without an exchange {:.1f} "
      "us:\nweak scaling can reach {:.2f}\n\nus of a hop, slowest rank\n{}\nMB/s sent by a rank, "
      "by the exchange alone and by the overlapped hop; of it CPU: us of an exchange\n{}{}",
      first.op, context.precision, lattice::text(first.local), first.Ls, context.ranks,
      context.threads, context.threads == 1 ? "" : "s", first.lanes, first.lanes == 1 ? "" : "s",
      size_text(first.exchange_bytes), first.flops / 1e6, summarize(all.alone.alone_us).median,
      summarize(all.alone.together_us).median, all.scaling_limit(), times.text(), rates.text(),
      uneven_notes(all));
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
      "overlap up to {:.2f} x exchange and then compute ({} with {} comm threads, {} L={}, {:.0f} "
      "% hidden), at least {:.2f} x; {}",
      best->gain(), name(best->strategy), best->comm_threads, best->op, best->L,
      100 * best->hidden(), worst->gain(), verified ? "all results verified" : "RESULTS WRONG");
}

}  // namespace ropewalk::bench
