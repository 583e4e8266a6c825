// Tables and rows; see tables.hpp.
#include "attach/tables.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/parse.hpp"
#include "common/report.hpp"
#include "common/statistics.hpp"

namespace ropewalk::bench {
namespace {

std::vector<double> totals(const AttachResult& result) {
  std::vector<double> all;
  for (const AttachTimes& round : result.rounds) all.push_back(total(round));
  return all;
}

double median_of(const AttachResult& result, AttachStep step) {
  std::vector<double> all;
  for (const AttachTimes& round : result.rounds) {
    all.push_back(round[static_cast<std::size_t>(step)]);
  }
  return summarize(all).median;
}

std::vector<std::string> cells(const AttachResult& result) {
  std::vector<std::string> words = {result.mechanism, size_text(result.bytes),
                                    result.cached ? "on" : "off"};
  for (std::size_t step = 0; step < attach_steps; ++step) {
    words.push_back(fmt::format("{:.2f}", median_of(result, static_cast<AttachStep>(step))));
  }
  words.push_back(fmt::format("{:.2f}", median_total(result)));
  words.push_back(fmt::format("{:.0f}", registration_percent(result)));
  return words;
}

}  // namespace

double median_total(const AttachResult& result) { return summarize(totals(result)).median; }

double registration_percent(const AttachResult& result) {
  const double all = median_total(result);
  if (all <= 0) return 0;
  return std::clamp(100 * (1 - median_of(result, AttachStep::copy) / all), 0.0, 100.0);
}

Json row(Json common, const AttachResult& result) {
  common["what"] = "steps";
  common["mechanism"] = result.mechanism;
  common["path"] = result.mechanism;
  common["cache"] = result.cached ? "on" : "off";
  common["bytes"] = result.bytes;
  common["pages"] = "4 KiB";
  common["buffers"] = "rewritten";
  common["time_us"] = to_json(summarize(totals(result)));
  for (std::size_t step = 0; step < attach_steps; ++step) {
    common[attach_step_names()[step] + "_us"] = median_of(result, static_cast<AttachStep>(step));
  }
  common["registration_percent"] = registration_percent(result);
  common["mb_per_s"] = mb_per_s(static_cast<double>(result.bytes), median_total(result));
  common["verified"] = result.verified;
  return common;
}

Json row(Json common, const TuneCost& cost, double alone) {
  common["what"] = "contention";
  common["mechanism"] = "cma";
  common["pattern"] = cost.path;
  common["bytes"] = cost.bytes;
  common["us"] = cost.us;
  common["times_alone"] = alone > 0 ? cost.us / alone : 0;
  return common;
}

Json row(Json common, const ReplayResult& result) {
  common["what"] = "replay";
  common["trace"] = result.trace;
  common["eviction"] = name(result.eviction);
  common["capacity"] = result.capacity;
  common["requests"] = result.requests;
  common["hits"] = result.counts.hits;
  common["misses"] = result.counts.misses;
  common["evictions"] = result.counts.evictions;
  common["entries"] = result.counts.entries;
  return common;
}

std::string steps_table(const std::vector<AttachResult>& results, const std::string& xpmem_reason) {
  TextTable lines({"mechanism", "size", "cache", "make us", "attach us", "touch us", "copy us",
                   "detach us", "us", "not copy %"},
                  1);
  for (const AttachResult& result : results) lines.add(cells(result));
  lines.add({"xpmem", "-", "-", "-", "-", "-", "-", "-", "-", "-"});
  return fmt::format("\nSteps of a transfer, slowest rank\n{}xpmem is not here: {}\n", lines.text(),
                     xpmem_reason);
}

std::string contention_table(const std::vector<TuneCost>& costs) {
  if (costs.empty()) return "\nNo contention: the kernel refuses process_vm_readv here\n";
  TextTable lines({"readers", "size", "us", "x alone"}, 1);
  for (const TuneCost& cost : costs) {
    lines.add({cost.path, size_text(cost.bytes), fmt::format("{:.2f}", cost.us),
               fmt::format("{:.2f}", cost.us / alone_us(costs, cost))});
  }
  return fmt::format("\nThe kernel's copies (cma) at once, slowest rank\n{}", lines.text());
}

std::string replay_table(const std::vector<ReplayResult>& results) {
  TextTable lines(
      {"trace", "entries", "eviction", "requests", "hits", "misses", "evictions", "missed %"}, 1);
  for (const ReplayResult& result : results) {
    const double missed =
        100 * static_cast<double>(result.counts.misses) / static_cast<double>(result.requests);
    lines.add({result.trace, std::to_string(result.capacity), name(result.eviction),
               std::to_string(result.requests), std::to_string(result.counts.hits),
               std::to_string(result.counts.misses), std::to_string(result.counts.evictions),
               fmt::format("{:.1f}", missed)});
  }
  return fmt::format("\nTraces in registration caches\n{}", lines.text());
}

double alone_us(const std::vector<TuneCost>& costs, const TuneCost& cost) {
  const auto found = std::ranges::find_if(costs, [&](const TuneCost& each) {
    return each.path == "alone" && each.bytes == cost.bytes;
  });
  return found == costs.end() ? 0 : found->us;
}

}  // namespace ropewalk::bench
