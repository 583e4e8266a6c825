#include "stencil/tables.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/parse.hpp"
#include "common/report.hpp"
#include "common/statistics.hpp"

namespace ropewalk::bench {
namespace {

double median(const StencilTimes& times) { return summarize(times.us).median; }

// The fastest of MPI's ways or of ropewalk's; null where none was measured.
const StencilTimes* best(const StencilSizeResult& result, Computing computing, bool by_mpi) {
  const StencilTimes* found = nullptr;
  for (const StencilTimes& one : result.times) {
    if (one.computing != computing || one.by_mpi() != by_mpi) continue;
    if (found == nullptr || median(one) < median(*found)) found = &one;
  }
  return found;
}

// MPI's best over ropewalk's best; 0 where one of them is missing.
double ratio(const StencilSizeResult& result, Computing computing) {
  const StencilTimes* ours = best(result, computing, false);
  const StencilTimes* plain = best(result, computing, true);
  return ours != nullptr && plain != nullptr ? median(*plain) / median(*ours) : 0;
}

std::string ratio_text(double value) { return value > 0 ? fmt::format("{:.2f}", value) : "-"; }

}  // namespace

std::vector<Json> rows(const StencilContext& context, const StencilSizeResult& result) {
  std::vector<Json> all;
  for (const StencilTimes& one : result.times) {
    const StencilTimes* plain = best(result, one.computing, true);
    Json row = {{"bench", "stencil"},
                {"op", name(one.computing)},
                {"bytes", result.face_bytes},
                {"edge", result.edge},
                {"ranks", context.ranks},
                {"mpi_grid", dotted(context.rank_grid)},
                {"threads", context.threads},
                {"periodic", context.periodic},
                {"memory", result.memory},
                {"mpi", context.mpi},
                {"strategy", one.way},
                {"pages", result.backing.all_huge ? "huge" : "small"},
                {"page_backing", to_json(result.backing)},
                {"buffers", "hot"},
                {"iterations", one.iterations},
                {"time_us", to_json(summarize(one.us))},
                {"mb_per_s", mb_per_s(static_cast<double>(result.face_bytes), median(one))},
                {"path", one.path},
                {"verified", result.wrong.empty()}};
    if (plain != nullptr && !one.by_mpi()) {
      row["plain_us"] = median(*plain);
      row["plain_way"] = plain->way;
      row["ratio"] = median(*plain) / median(one);
    }
    all.push_back(std::move(row));
  }
  return all;
}

std::string table(const std::vector<StencilSizeResult>& results, Computing computing) {
  std::vector<std::string> headers = {"memory", "face", "edge"};
  for (const StencilTimes& one : results.front().times) {
    if (one.computing == computing) headers.push_back(one.way);
  }
  headers.push_back("ratio");
  TextTable lines(headers);
  for (const StencilSizeResult& result : results) {
    std::vector<std::string> cells = {result.memory, size_text(result.face_bytes),
                                      std::to_string(result.edge)};
    for (const StencilTimes& one : result.times) {
      if (one.computing == computing) cells.push_back(fmt::format("{:.2f}", median(one)));
    }
    cells.push_back(ratio_text(ratio(result, computing)));
    lines.add(cells);
  }
  return fmt::format("\n{}: microseconds of a step\n{}", name(computing), lines.text());
}

std::string summary(const std::vector<StencilSizeResult>& results) {
  std::string text;
  for (const std::string& word : computing_names()) {
    const auto at = std::ranges::find(computing_names(), word) - computing_names().begin();
    double least = 0;
    double most = 0;
    for (const StencilSizeResult& result : results) {
      const double one = ratio(result, static_cast<Computing>(at));
      if (one == 0) continue;
      least = least == 0 ? one : std::min(least, one);
      most = std::max(most, one);
    }
    if (least > 0) {
      text += fmt::format("{}{} {:.2f} to {:.2f}", text.empty() ? "" : ", ", word, least, most);
    }
  }
  const bool right =
      std::ranges::all_of(results, [](const StencilSizeResult& one) { return one.wrong.empty(); });
  return fmt::format("a step is faster than by the best MPI way by: {}; {}",
                     text.empty() ? "no measured share" : text,
                     right ? "all data verified" : "RECEIVED DATA WRONG");
}

}  // namespace ropewalk::bench
