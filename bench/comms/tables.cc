// Tables and rows of the halo exchange benchmark; see tables.hpp.
#include "comms/tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/parse.hpp"
#include "common/statistics.hpp"

namespace ropewalk::bench {
namespace {

double sent(const Context& context, const Result& result) {
  return static_cast<double>(exchange_bytes(result.lattice, context.rank_grid));
}

// Faces of an uneven lattice differ in size; the largest stands for them in the tables.
std::size_t largest_face(const Context& context, const Result& result) {
  std::size_t bytes = 0;
  for (int d = 0; d < static_cast<int>(context.rank_grid.size()); ++d) {
    if (context.rank_grid[d] > 1) bytes = std::max(bytes, face_bytes(result.lattice, d));
  }
  return bytes;
}

// Median and error over rounds of the slowest rank; least and most of any rank in any round.
Rate uni_rate(const Context& context, const Result& result, const Column& column) {
  const double bytes = sent(context, result);
  Rate one_way = rate(bytes, summarize(slowest(column)));
  std::vector<double> all;
  for (const auto& rank : column.us) all.insert(all.end(), rank.begin(), rank.end());
  const Summary every = summarize(all);
  one_way.min = mb_per_s(bytes, every.max);
  one_way.max = mb_per_s(bytes, every.min);
  return one_way;
}

double line_rate(const Context& context, const Result& result) {
  if (context.line_rate_mb > 0) return context.line_rate_mb;
  return mb_per_s(sent(context, result), limit_us(result));
}

double percent(const Context& context, const Result& result, const Column& column) {
  const double one_way = uni_rate(context, result, column).median;
  const double all = line_rate(context, result);
  return all > 0 ? 100 * one_way / all : 0;
}

Json rate_json(const Rate& value, double factor) {
  const auto tenth = [&](double x) { return std::round(10 * factor * x) / 10; };
  return {{"median", tenth(value.median)},
          {"error", tenth(value.error)},
          {"min", tenth(value.min)},
          {"max", tenth(value.max)}};
}

std::string rate_cells(const Rate& value, double factor) {
  return fmt::format("{:>10.1f} {:>8.1f} {:>8.1f} {:>8.1f}", factor * value.median,
                     factor * value.error, factor * value.min, factor * value.max);
}

const Column* find(const Result& result, const std::string& strategy, const std::string& pages) {
  for (const Column& column : result.columns) {
    if (column.strategy == strategy && column.pages == pages) return &column;
  }
  return nullptr;
}

const Column& fastest(const Context& context, const Result& result) {
  const Column* best = nullptr;
  for (const Column& column : result.columns) {
    if (column.strategy == "limit") continue;
    if (best == nullptr ||
        uni_rate(context, result, column).median > uni_rate(context, result, *best).median) {
      best = &column;
    }
  }
  return *best;
}

std::string limit_header(const Context& context) {
  return context.line_rate_mb > 0 ? "line rate" : "copy limit";
}

std::vector<std::string> paper_line(const Context& context, const Result& result) {
  std::vector<std::string> cells = {label(result.lattice),
                                    std::to_string(largest_face(context, result))};
  for (const Column& column : result.columns) {
    if (column.strategy == "limit") continue;
    cells.push_back(fmt::format("{:.1f}", 2 * uni_rate(context, result, column).median));
  }
  cells.push_back(fmt::format("{:.1f}", 2 * line_rate(context, result)));
  cells.push_back(fmt::format("{:.0f}", percent(context, result, fastest(context, result))));
  return cells;
}

// How much faster huge pages are than memalign, for the same strategy; 0 where not both were run.
double page_gain(const Context& context, const Result& result) {
  double gain = 0;
  for (const Column& column : result.columns) {
    if (column.strategy == "limit" || column.pages != "huge") continue;
    const Column* other = find(result, column.strategy, "memalign");
    if (other == nullptr) continue;
    const double ratio =
        uni_rate(context, result, column).median / uni_rate(context, result, *other).median;
    gain = std::max(gain, ratio);
  }
  return gain;
}

}  // namespace

double limit_us(const Result& result) {
  double best = 0;
  for (const Column& column : result.columns) {
    if (column.strategy != "limit") continue;
    const double time = summarize(slowest(column)).median;
    if (best == 0 || time < best) best = time;
  }
  return best;
}

std::vector<Json> rows(const Context& context, const Result& result) {
  std::vector<Json> all;
  for (const Column& column : result.columns) {
    if (column.strategy == "limit") continue;
    const Rate uni = uni_rate(context, result, column);
    Json row = {{"bench", "comms"},
                {"L", label(result.lattice)},
                {"Ls", result.lattice.Ls},
                {"bytes", largest_face(context, result)},
                {"exchange_bytes", exchange_bytes(result.lattice, context.rank_grid)},
                {"ranks", context.ranks},
                {"mpi", context.mpi},
                {"mpi_grid", dotted(context.rank_grid)},
                {"strategy", column.strategy},
                {"lanes", context.lanes},
                {"pages", column.pages},
                {"page_backing", to_json(context.backings.at(column.pages))},
                {"buffers", result.buffers},
                {"slots", result.slots},
                {"iterations", column.iterations},
                {"time_us", to_json(summarize(slowest(column)))},
                {"mb_per_s", std::round(20 * uni.median) / 10},
                {"uni_mb_per_s", rate_json(uni, 1)},
                {"bidi_mb_per_s", rate_json(uni, 2)},
                {"limit_us", limit_us(result)},
                {"line_rate_mb_per_s", std::round(10 * line_rate(context, result)) / 10},
                {"line_rate_percent", std::round(10 * percent(context, result, column)) / 10},
                {"path", column.chosen},
                {"verified", column.verified}};
    if (!column.verified) row["wrong"] = column.wrong;
    all.push_back(std::move(row));
  }
  return all;
}

std::string paper_table(const Context& context, const std::vector<Result>& results,
                        const std::string& buffers) {
  std::vector<std::string> headers = {"L", "bytes"};
  for (const Column& column : results.front().columns) {
    if (column.strategy != "limit") headers.push_back(column.strategy + "/" + column.pages);
  }
  headers.push_back(limit_header(context));
  headers.push_back("best %");
  TextTable table(headers);
  for (const Result& result : results) {
    if (result.buffers == buffers) table.add(paper_line(context, result));
  }
  return fmt::format("\nBidirectional MB/s a rank, {} buffers, {} lane{}\n{}", buffers,
                     context.lanes, context.lanes == 1 ? "" : "s", table.text());
}

std::string itt_table(const Context& context, const std::vector<Result>& results,
                      const std::string& buffers, const std::string& strategy,
                      const std::string& pages) {
  std::string text =
      fmt::format("\n{} on {}, {} buffers\n{:>9} {:>3} {:>9}  {:>38}  {:>38}  {:>9}\n", strategy,
                  pages, buffers, "L", "Ls", "bytes", "MB/s uni (err/min/max)",
                  "MB/s bidi (err/min/max)", "% of rate");
  for (const Result& result : results) {
    const Column* column = find(result, strategy, pages);
    if (result.buffers != buffers || column == nullptr) continue;
    const Rate uni = uni_rate(context, result, *column);
    text += fmt::format("{:>9} {:>3} {:>9}  {:>38}  {:>38}  {:>9.1f}\n", label(result.lattice),
                        result.lattice.Ls, largest_face(context, result), rate_cells(uni, 1),
                        rate_cells(uni, 2), percent(context, result, *column));
  }
  return text;
}

namespace {

const Result& best_result(const Context& context, const std::vector<Result>& results) {
  const auto best = [&](const Result& result) {
    return uni_rate(context, result, fastest(context, result)).median;
  };
  return *std::max_element(results.begin(), results.end(),
                           [&](const Result& a, const Result& b) { return best(a) < best(b); });
}

}  // namespace

const Column& best_column(const Context& context, const std::vector<Result>& results) {
  return fastest(context, best_result(context, results));
}

std::string summary(const Context& context, const std::vector<Result>& results) {
  const Result& best = best_result(context, results);
  double gain = 0;
  bool verified = true;
  for (const Result& result : results) {
    gain = std::max(gain, page_gain(context, result));
    for (const Column& column : result.columns) verified = verified && column.verified;
  }
  const Column& column = fastest(context, best);
  std::string text = fmt::format(
      "halo exchange up to {:.0f} MB/s bidirectional a rank ({} on {}, L={}, {} buffers), {:.0f} % "
      "of the {}",
      2 * uni_rate(context, best, column).median, column.strategy, column.pages,
      label(best.lattice), best.buffers, percent(context, best, column), limit_header(context));
  if (gain > 0) text += fmt::format("; huge pages up to {:.2f} x memalign", gain);
  return text + (verified ? "; all data verified" : "; RECEIVED DATA WRONG");
}

}  // namespace ropewalk::bench
