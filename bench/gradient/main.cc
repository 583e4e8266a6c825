// ropewalk-bench-gradient measures figures 1 to 5 of section IV of Boyle et al. 2017, on this
// machine and its MPI.
#include <fmt/format.h>

#include <algorithm>

#include "common/machine.hpp"
#include "common/main.hpp"
#include "gradient/measure.hpp"
#include "gradient/options.hpp"
#include "gradient/tables.hpp"

namespace ropewalk::bench {
namespace {

// The longest of the default lengths are left out where there is no memory for them.
void drop_lengths(GradientOptions& options, const Ranks& ranks) {
  if (!options.lengths.empty()) return;
  const auto fits = [&] {
    const std::size_t available = available_memory();
    return available == 0 || memory_of(options.length_list.back(), ranks.node_size(),
                                       options.page_list.size()) <= available / 10 * 8;
  };
  while (options.length_list.size() > 1 && !ranks.all(fits())) options.length_list.pop_back();
}

std::string heading(const GradientContext& context) {
  std::string limit = "limit: loads and stores alone";
  if (context.nodes != 1) {
    limit = context.line_rate > 0
                ? fmt::format("limit: line rate {:.0f} MB/s of a node", context.line_rate / 1e6)
                : "no limit: ROPEWALK_LINE_RATE is not set";
  }
  std::string rings;
  for (const BackingReport& backing : context.ring_backings) {
    rings += fmt::format("# improved: pages {}\n", line(backing));
  }
  return fmt::format("# pages {}\n{}# {} node{}; improved: {} threads a rank; {}\n",
                     line(context.backing), rings, context.nodes, context.nodes == 1 ? "" : "s",
                     context.threads, limit);
}

void run_gradient(GradientOptions options, const Ranks& ranks, Report& report) {
  if (ranks.size() == 1) {
    throw CollectiveError(ErrorCode::argument,
                          "ranks: a reduction of one rank moves nothing; start at least two: "
                          "ropewalk bench gradient -n 2");
  }
  drop_lengths(options, ranks);
  GradientMeasurement measurement(options, ranks, std::ranges::max(options.length_list));
  const GradientContext context{
      ranks.size(),    measurement.nodes(), ranks.node_size(),     measurement.threads(),
      ranks.library(), options.line_rate,   measurement.backing(), measurement.ring_backings()};
  report.text(heading(context));
  measurement.budget().announce(report);
  double all = 0;
  double done = 0;
  const auto weight = [](std::size_t length) { return 3e5 + static_cast<double>(length); };
  for (const std::size_t length : options.length_list) all += weight(length);
  std::vector<GradientResult> results;
  std::string wrong;
  for (const std::size_t length : options.length_list) {
    report.progress(fmt::format("{} floats", length), done / all);
    results.push_back(measurement.measure(length));
    done += weight(length);
    for (const Json& row : rows(context, results.back())) report.row(row);
    if (wrong.empty()) wrong = results.back().wrong;
  }
  report.text(figures(context, results));
  report.summary(summary(context, results));
  // Every rank has gathered the same verdict.
  if (!wrong.empty()) throw CollectiveError(ErrorCode::internal, "received data: " + wrong);
}

}  // namespace
}  // namespace ropewalk::bench

int main(int argc, char** argv) {
  using namespace ropewalk::bench;
  return run_main<GradientOptions>(
      "Reduction of a large vector: as published, as improved, and by ropewalk.",
      "ropewalk-bench-gradient", Need::mpi, run_gradient, argc, argv);
}
