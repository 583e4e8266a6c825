// Text and rows; see tables.hpp.
#include "p2p/tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "common/parse.hpp"
#include "common/report.hpp"
#include "common/statistics.hpp"

namespace ropewalk::bench {
namespace {

double median(const P2pTimes& times) { return summarize(times.us).median; }
// To a millionth: copies of a few bytes take some nanoseconds.
double rounded(double value) { return std::round(1e6 * value) / 1e6; }

std::string time_text(double us) {
  return us < 10     ? fmt::format("{:.3f}", us)
         : us < 1000 ? fmt::format("{:.1f}", us)
                     : fmt::format("{:.0f}", us);
}

std::string ratio_text(double value) { return fmt::format("{:.2f}", value); }

// The middle half of the ratios within each round: how sure the ratio is.
struct Quartiles {
  double low = 0;
  double high = 0;
};
Quartiles quartiles(const P2pResult& result) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(result.plain.us.size(), result.choice.us.size()); ++i) {
    ratios.push_back(result.plain.us[i] / result.choice.us[i]);
  }
  if (ratios.empty()) return {};
  std::ranges::sort(ratios);
  const auto last = static_cast<double>(ratios.size() - 1);
  return {ratios[static_cast<std::size_t>(std::floor(last / 4))],
          ratios[static_cast<std::size_t>(std::ceil(last * 3 / 4))]};
}

std::string buffers_text(const P2pResult& result) {
  return fmt::format("{}, {} memory, {} buffers", name(result.mode), result.memory, result.buffers);
}

// What every row of a case begins with.
Json case_row(const P2pContext& context, const P2pResult& result) {
  const BackingReport& backing = context.backings.at(result.memory);
  return {{"bench", "p2p"},
          {"op", name(result.mode)},
          {"bytes", result.bytes},
          {"ranks", context.ranks},
          {"pairs", context.pairs()},
          {"window", result.window},
          {"mpi", context.mpi},
          {"memory", result.memory},
          {"pages", backing.all_huge ? "huge" : "small"},
          {"page_backing", to_json(backing)},
          {"buffers", result.buffers}};
}

void add_times(const P2pContext& context, const P2pResult& result, const P2pTimes& times,
               Json& row) {
  const double us = median(times);
  row["iterations"] = times.iterations;
  row["time_us"] = to_json(summarize(times.us));
  row["mb_per_s"] = rounded(p2p_mb_per_s(context, result, us));
  row["messages_per_s"] = std::round(messages_per_s(context, result, us));
  if (result.limit_us > 0) {
    row["limit_us"] = rounded(result.limit_us);
    row["limit_ratio"] = rounded(us / result.limit_us);
  }
}

Json choice_row(const P2pContext& context, const P2pResult& result) {
  Json row = case_row(context, result);
  row["mechanism"] = "choice";
  add_times(context, result, result.choice, row);
  const double plain = median(result.plain);
  const Quartiles sure = quartiles(result);
  row["plain_us"] = rounded(plain);
  row["plain_time_us"] = to_json(summarize(result.plain.us));
  row["plain_mb_per_s"] = rounded(p2p_mb_per_s(context, result, plain));
  row["ratio"] = rounded(ratio(result));
  row["ratio_quartiles"] = {rounded(sure.low), rounded(sure.high)};
  if (!result.forced.empty()) {
    const BestMechanism best = best_mechanism(result);
    row["best_mechanism"] = name(best.mechanism);
    row["best_us"] = rounded(best.us);
    row["best_ratio"] = rounded(median(result.choice) / best.us);
  }
  row["path"] = name(result.path);
  return row;
}

void add_verdict(const P2pResult& result, Json& row) {
  row["verified"] = result.wrong.empty();
  if (!result.wrong.empty()) row["wrong"] = result.wrong;
}

// Which forced mechanisms any line of a table has.
std::vector<Mechanism> forced_in(const std::vector<P2pResult>& results) {
  std::set<Mechanism> found;
  for (const P2pResult& result : results) {
    for (const auto& entry : result.forced) found.insert(entry.first);
  }
  return {found.begin(), found.end()};
}

std::vector<std::string> headers(Mode mode, const std::vector<Mechanism>& forced) {
  const std::string unit = mode == Mode::rate ? "million/s" : "MB/s";
  std::vector<std::string> all = {"bytes",    "window",    "MPI us",      "ropewalk us",
                                  "ratio",    "quartiles", "MPI " + unit, unit,
                                  "limit us", "/ limit",   "path"};
  for (const Mechanism each : forced) all.push_back(fmt::format("{} us", name(each)));
  if (!forced.empty()) all.insert(all.end(), {"best", "/ best"});
  all.emplace_back("verified");
  return all;
}

std::string rate_text(const P2pContext& context, const P2pResult& result, double us) {
  if (result.mode == Mode::rate) {
    return fmt::format("{:.3f}", messages_per_s(context, result, us) / 1e6);
  }
  return fmt::format("{:.1f}", p2p_mb_per_s(context, result, us));
}

void add_forced_cells(const P2pResult& result, const std::vector<Mechanism>& forced,
                      std::vector<std::string>& cells) {
  for (const Mechanism each : forced) {
    const auto found = result.forced.find(each);
    cells.push_back(found == result.forced.end() ? "-" : time_text(median(found->second)));
  }
  if (forced.empty()) return;
  const BestMechanism best = best_mechanism(result);
  const bool measured = !result.forced.empty();
  cells.push_back(measured ? name(best.mechanism) : "-");
  cells.push_back(measured ? ratio_text(median(result.choice) / best.us) : "-");
}

std::vector<std::string> cells(const P2pContext& context, const P2pResult& result,
                               const std::vector<Mechanism>& forced) {
  const double plain = median(result.plain);
  const double ours = median(result.choice);
  const Quartiles sure = quartiles(result);
  const bool limited = result.limit_us > 0;
  std::vector<std::string> all = {size_text(result.bytes),
                                  std::to_string(result.window),
                                  time_text(plain),
                                  time_text(ours),
                                  ratio_text(ratio(result)),
                                  fmt::format("{:.2f}-{:.2f}", sure.low, sure.high),
                                  rate_text(context, result, plain),
                                  rate_text(context, result, ours),
                                  limited ? time_text(result.limit_us) : "-",
                                  limited ? ratio_text(ours / result.limit_us) : "-",
                                  name(result.path)};
  add_forced_cells(result, forced, all);
  all.emplace_back(result.wrong.empty() ? "yes" : "WRONG");
  return all;
}

double geometric_mean(const std::vector<double>& values) {
  double logs = 0;
  for (const double one : values) logs += std::log(one);
  return std::exp(logs / static_cast<double>(values.size()));
}

// "; the choice took at most 1.04 x the best mechanism (latency, ...)"; empty without --mechanism.
std::string choice_text(const std::vector<P2pResult>& results) {
  const P2pResult* worst = nullptr;
  double most = 0;
  for (const P2pResult& result : results) {
    if (result.forced.empty()) continue;
    const double here = median(result.choice) / best_mechanism(result).us;
    if (here > most) worst = &result;
    most = std::max(most, here);
  }
  if (worst == nullptr) return "";
  return fmt::format("; the choice took at most {:.2f} x the best mechanism ({}, {}: {})", most,
                     buffers_text(*worst), size_text(worst->bytes),
                     name(best_mechanism(*worst).mechanism));
}

}  // namespace

double ratio(const P2pResult& result) {
  const double ours = median(result.choice);
  return ours > 0 ? median(result.plain) / ours : 0;
}

double p2p_mb_per_s(const P2pContext& context, const P2pResult& result, double us) {
  return static_cast<double>(result.bytes) * messages_per_s(context, result, us) / 1e6;
}

double messages_per_s(const P2pContext& context, const P2pResult& result, double us) {
  const int each_way = result.mode == Mode::bidirectional ? 2 : 1;
  return us > 0 ? 1e6 * context.pairs() * each_way / us : 0;
}

BestMechanism best_mechanism(const P2pResult& result) {
  BestMechanism best{result.path, median(result.choice)};
  for (const auto& [mechanism, times] : result.forced) {
    if (median(times) < best.us) best = {mechanism, median(times)};
  }
  return best;
}

std::vector<Json> rows(const P2pContext& context, const P2pResult& result) {
  std::vector<Json> all = {choice_row(context, result)};
  for (const auto& [mechanism, times] : result.forced) {
    Json row = case_row(context, result);
    row["mechanism"] = name(mechanism);
    add_times(context, result, times, row);
    row["path"] = name(mechanism);
    all.push_back(std::move(row));
  }
  for (Json& row : all) add_verdict(result, row);
  return all;
}

std::string table(const P2pContext& context, const std::vector<P2pResult>& results) {
  const std::vector<Mechanism> forced = forced_in(results);
  TextTable lines(headers(results.front().mode, forced));
  for (const P2pResult& result : results) lines.add(cells(context, result, forced));
  return fmt::format("\n{}\n{}", buffers_text(results.front()), lines.text());
}

std::string summary(const std::vector<P2pResult>& results) {
  std::map<Mode, std::vector<double>> ratios;
  const P2pResult* worst = nullptr;
  bool verified = true;
  for (const P2pResult& result : results) {
    ratios[result.mode].push_back(ratio(result));
    if (worst == nullptr || ratio(result) < ratio(*worst)) worst = &result;
    verified = verified && result.wrong.empty();
  }
  std::vector<std::string> parts;
  parts.reserve(ratios.size());
  for (const auto& [mode, list] : ratios) {
    parts.push_back(fmt::format("{} {:.2f}", name(mode), geometric_mean(list)));
  }
  return fmt::format("times the plain MPI's speed, geometric mean: {}; least {:.2f} ({}, {}){}; {}",
                     fmt::join(parts, ", "), ratio(*worst), buffers_text(*worst),
                     size_text(worst->bytes), choice_text(results),
                     verified ? "all data verified" : "RECEIVED DATA WRONG");
}

}  // namespace ropewalk::bench
