// Text and rows; see tables.hpp.
#include "collectives/tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/parse.hpp"
#include "common/statistics.hpp"

namespace ropewalk::bench {
namespace {

std::string time_text(double us) {
  return us < 10     ? fmt::format("{:.3f}", us)
         : us < 1000 ? fmt::format("{:.1f}", us)
                     : fmt::format("{:.0f}", us);
}

double rounded(double value) { return std::round(1000 * value) / 1000; }

}  // namespace

double ratio(const CollectiveResult& result) {
  const double ours = median(result.ropewalk);
  return ours > 0 ? median(result.plain) / ours : 0;
}

Quartiles ratio_quartiles(const CollectiveResult& result) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(result.plain.size(), result.ropewalk.size()); ++i) {
    if (result.ropewalk[i] > 0) ratios.push_back(result.plain[i] / result.ropewalk[i]);
  }
  if (ratios.empty()) return {};
  std::sort(ratios.begin(), ratios.end());
  const auto last = static_cast<double>(ratios.size() - 1);
  return {ratios[static_cast<std::size_t>(std::floor(last / 4))],
          ratios[static_cast<std::size_t>(std::ceil(last * 3 / 4))]};
}

Json row(const CollectivesContext& context, const CollectiveResult& result) {
  const double ours = median(result.ropewalk);
  const BackingReport& backing = context.backings.at(result.memory);
  const Quartiles quartiles = ratio_quartiles(result);
  Json json = {{"bench", "collectives"},
               {"op", name(result.op)},
               {"bytes", result.bytes},
               {"ranks", context.ranks},
               {"mpi", context.mpi},
               {"memory", result.memory},
               {"pages", backing.all_huge ? "huge" : "small"},
               {"page_backing", to_json(backing)},
               {"buffers", result.buffers},
               {"iterations", result.iterations},
               {"time_us", to_json(summarize(result.ropewalk))},
               {"mb_per_s", rounded(mb_per_s(static_cast<double>(result.bytes), ours))},
               {"plain_us", rounded(median(result.plain))},
               {"plain_time_us", to_json(summarize(result.plain))},
               {"ratio", rounded(ratio(result))},
               {"ratio_quartiles", {rounded(quartiles.low), rounded(quartiles.high)}}};
  if (context.ranks_on.size() > 1) {
    json["ranks_on_nodes"] = context.ranks_on;
    if (context.line_rate > 0) json["line_rate_mb_per_s"] = rounded(context.line_rate);
  }
  if (!result.limit.empty()) {
    json["limit_us"] = rounded(median(result.limit));
    json["limit_ratio"] = rounded(ours / median(result.limit));
  }
  if (result.predicted_us) json["predicted_us"] = rounded(*result.predicted_us);
  json["path"] = result.path;
  json["verified"] = result.wrong.empty();
  if (!result.wrong.empty()) json["wrong"] = result.wrong;
  return json;
}

std::string table(const std::vector<CollectiveResult>& results) {
  const CollectiveResult& first = results.front();
  std::vector<std::string> headers = {"bytes",     "MPI us",   "ropewalk us", "ratio",
                                      "quartiles", "limit us", "/ limit"};
  if (first.predicted_us) headers.emplace_back("predicted us");
  headers.insert(headers.end(), {"path", "verified"});
  TextTable lines(headers);
  for (const CollectiveResult& result : results) {
    const double ours = median(result.ropewalk);
    const Quartiles quartiles = ratio_quartiles(result);
    std::vector<std::string> cells = {size_text(result.bytes), time_text(median(result.plain)),
                                      time_text(ours), fmt::format("{:.2f}", ratio(result)),
                                      fmt::format("{:.2f}-{:.2f}", quartiles.low, quartiles.high)};
    const bool limited = !result.limit.empty();
    cells.push_back(limited ? time_text(median(result.limit)) : "-");
    cells.push_back(limited ? fmt::format("{:.2f}", ours / median(result.limit)) : "-");
    if (result.predicted_us) cells.push_back(time_text(*result.predicted_us));
    cells.push_back(result.path);
    cells.emplace_back(result.wrong.empty() ? "yes" : "WRONG");
    lines.add(cells);
  }
  return fmt::format("\n{}, {} memory, {} buffers\n{}", name(first.op), first.memory, first.buffers,
                     lines.text());
}

std::string summary(const std::vector<CollectiveResult>& results) {
  std::map<Op, std::vector<double>> ratios;
  const CollectiveResult* worst = nullptr;
  bool verified = true;
  for (const CollectiveResult& result : results) {
    ratios[result.op].push_back(ratio(result));
    if (worst == nullptr || ratio(result) < ratio(*worst)) worst = &result;
    verified = verified && result.wrong.empty();
  }
  std::vector<std::string> parts;
  for (const auto& [op, list] : ratios) {
    double logs = 0;
    for (const double one : list) logs += std::log(one);
    parts.push_back(
        fmt::format("{} {:.2f}", name(op), std::exp(logs / static_cast<double>(list.size()))));
  }
  return fmt::format(
      "times the plain MPI's speed, geometric mean: {}; least {:.2f} ({}, {}, {}, {}); {}",
      fmt::join(parts, ", "), ratio(*worst), name(worst->op), size_text(worst->bytes),
      worst->memory, worst->buffers, verified ? "all data verified" : "RECEIVED DATA WRONG");
}

}  // namespace ropewalk::bench
