// Text and rows; see tables.hpp.
#include "gradient/tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/parse.hpp"
#include "common/report.hpp"
#include "common/statistics.hpp"

namespace ropewalk::bench {
namespace {

// From here on the paper speaks of large vectors, and so do the goals of this bench.
constexpr std::size_t large_floats = std::size_t{4} << 20;

double rounded(double value) { return std::round(1000 * value) / 1000; }

// These are the figures of one variant at one length.
struct Figures {
  double wall = 0;
  double communication = 0;
  double other = 0;
  double percent = 0;
  double mb_per_s = 0;
};

Figures figures_of(const GradientContext& context, const GradientResult& result,
                   const GradientColumn& column) {
  Figures out;
  out.wall = median(column.wall);
  out.communication = std::min(out.wall, median(column.communication));
  out.other = out.wall - out.communication;
  out.percent = out.wall > 0 ? 100 * out.communication / out.wall : 0;
  out.mb_per_s = mb_per_s(2 * ring_bytes(result.length, context.ranks), out.communication);
  return out;
}

const GradientColumn* find(const GradientResult& result, const std::string& variant) {
  for (const GradientColumn& column : result.columns) {
    if (column.variant == variant) return &column;
  }
  return nullptr;
}

std::string time_text(double us) {
  return us < 10     ? fmt::format("{:.2f}", us)
         : us < 1000 ? fmt::format("{:.1f}", us)
                     : fmt::format("{:.0f}", us);
}

std::string length_text(std::size_t length) {
  constexpr std::size_t kilo = 1024;
  if (length >= kilo * kilo && length % (kilo * kilo) == 0) {
    return fmt::format("{}M", length / (kilo * kilo));
  }
  return length >= kilo && length % kilo == 0 ? fmt::format("{}K", length / kilo)
                                              : fmt::format("{}", length);
}

template <class Cell>
std::string figure(const std::string& title, const GradientContext& context,
                   const std::vector<GradientResult>& results, Cell cell) {
  std::vector<std::string> headers = {"floats"};
  for (const GradientColumn& column : results.front().columns) headers.push_back(column.variant);
  TextTable lines(headers);
  for (const GradientResult& result : results) {
    std::vector<std::string> cells = {length_text(result.length)};
    for (const GradientColumn& column : result.columns) {
      cells.push_back(cell(figures_of(context, result, column)));
    }
    lines.add(cells);
  }
  return fmt::format("\n{}\n{}", title, lines.text());
}

// Shows the wall time, and what it is compared with.
std::string wall_figure(const GradientContext& context,
                        const std::vector<GradientResult>& results) {
  std::vector<std::string> headers = {"floats"};
  for (const GradientColumn& column : results.front().columns) headers.push_back(column.variant);
  headers.insert(headers.end(), {"limit", "% of limit", "x published", "path", "verified"});
  TextTable lines(headers);
  for (const GradientResult& result : results) {
    std::vector<std::string> cells = {length_text(result.length)};
    for (const GradientColumn& column : result.columns) {
      cells.push_back(time_text(median(column.wall)));
    }
    const double limit = limit_us(context, result);
    const GradientColumn* ours = find(result, "ropewalk");
    const GradientColumn* published = find(result, "published");
    cells.push_back(limit > 0 ? time_text(limit) : "-");
    cells.push_back(limit > 0 && ours != nullptr
                        ? fmt::format("{:.0f}", 100 * limit / median(ours->wall))
                        : "-");
    cells.push_back(ours != nullptr && published != nullptr
                        ? fmt::format("{:.2f}", median(published->wall) / median(ours->wall))
                        : "-");
    cells.push_back(ours != nullptr ? result.path : "-");
    cells.emplace_back(result.wrong.empty() ? "yes" : "WRONG");
    lines.add(cells);
  }
  return fmt::format("\nFigure 5: wall time of a reduction, us\n{}", lines.text());
}

}  // namespace

double ring_bytes(std::size_t length, int ranks) {
  return 2.0 * (ranks - 1) / ranks * static_cast<double>(length) * sizeof(float);
}

double limit_us(const GradientContext& context, const GradientResult& result) {
  if (!result.limit.empty()) return median(result.limit);
  if (context.nodes == 1 || context.line_rate <= 0) return 0;
  const int nodes = context.nodes > 0 ? context.nodes : context.ranks / context.node_ranks;
  return nodes > 1 ? ring_bytes(result.length, nodes) / context.line_rate * 1e6 : 0;
}

std::vector<Json> rows(const GradientContext& context, const GradientResult& result) {
  std::vector<Json> out;
  const double limit = limit_us(context, result);
  const GradientColumn* published = find(result, "published");
  const GradientColumn* plain = find(result, "mpi");
  for (const GradientColumn& column : result.columns) {
    const Figures found = figures_of(context, result, column);
    Json json = {{"bench", "gradient"},
                 {"variant", column.variant},
                 {"floats", result.length},
                 {"bytes", result.length * sizeof(float)},
                 {"ranks", context.ranks},
                 {"nodes", context.nodes},
                 {"mpi", context.mpi},
                 {"pages", context.backing.all_huge ? "huge" : "small"},
                 {"buffers", "hot"},
                 {"iterations", column.iterations},
                 {"time_us", to_json(summarize(column.wall))},
                 {"communication_us", rounded(found.communication)},
                 {"other_us", rounded(found.other)},
                 {"communication_percent", rounded(found.percent)},
                 {"mb_per_s", rounded(found.mb_per_s)}};
    if (column.threads > 0) {
      json["threads"] = column.threads;
      json["pages"] = column.pages;
    }
    if (column.variant == "ropewalk") json["path"] = result.path;
    if (published != nullptr) {
      json["times_published"] = rounded(median(published->wall) / found.wall);
    }
    if (plain != nullptr) {
      json["plain_us"] = rounded(median(plain->wall));
      json["ratio"] = rounded(median(plain->wall) / found.wall);
    }
    if (limit > 0) {
      json["limit_us"] = rounded(limit);
      json["limit_percent"] = rounded(100 * limit / found.wall);
    }
    json["verified"] = result.wrong.empty();
    if (!result.wrong.empty()) json["wrong"] = result.wrong;
    out.push_back(std::move(json));
  }
  return out;
}

std::string figures(const GradientContext& context, const std::vector<GradientResult>& results) {
  return figure("Figure 1: bandwidth inside communication calls, MB/s of a rank, both directions",
                context, results,
                [](const Figures& one) { return fmt::format("{:.1f}", one.mb_per_s); }) +
         figure("Figure 2: time in communication calls, us", context, results,
                [](const Figures& one) { return time_text(one.communication); }) +
         figure("Figure 3: everything else (memory, copies, additions), us", context, results,
                [](const Figures& one) { return time_text(one.other); }) +
         figure("Figure 4: share of communication, %", context, results,
                [](const Figures& one) { return fmt::format("{:.0f}", one.percent); }) +
         wall_figure(context, results);
}

std::string summary(const GradientContext& context, const std::vector<GradientResult>& results) {
  std::vector<std::string> parts;
  double least = 0;
  double share = 0;
  bool verified = true;
  for (const GradientResult& result : results) {
    verified = verified && result.wrong.empty();
    const GradientColumn* ours = find(result, "ropewalk");
    if (ours == nullptr || result.length < large_floats) continue;
    const double wall = median(ours->wall);
    if (const GradientColumn* published = find(result, "published")) {
      const double times = median(published->wall) / wall;
      if (least == 0 || times < least) least = times;
    }
    const double percent = 100 * limit_us(context, result) / wall;
    if (percent > 0 && (share == 0 || percent < share)) share = percent;
  }
  if (least > 0) {
    parts.push_back(fmt::format("from 4M floats at least {:.1f} x as fast as published", least));
  }
  if (share > 0) parts.push_back(fmt::format("at least {:.0f} % of the limit", share));
  parts.emplace_back(verified ? "all data verified" : "RECEIVED DATA WRONG");
  return fmt::format("{}", fmt::join(parts, "; "));
}

}  // namespace ropewalk::bench
