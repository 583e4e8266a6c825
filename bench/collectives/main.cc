// ropewalk-bench-collectives: collectives through the plain MPI, through ropewalk, and as fast as
// their loads and stores alone, or over nodes the bytes on the network.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "collectives/measure.hpp"
#include "collectives/options.hpp"
#include "collectives/tables.hpp"
#include "common/main.hpp"

namespace ropewalk::bench {
namespace {

std::string network_text(const std::vector<int>& ranks_on, double line_rate) {
  const std::string rate =
      line_rate > 0
          ? fmt::format("what a node's link must carry, at {:.1f} MB/s each way", line_rate)
          : "none: ROPEWALK_LINE_RATE is not set";
  return fmt::format("# {} nodes of {} ranks; limit: {}\n", ranks_on.size(),
                     fmt::join(ranks_on, ","), rate);
}

std::string heading(const CollectivesMeasurement& measurement,
                    const CollectivesBenchOptions& options) {
  std::string text;
  for (const auto& entry : measurement.backings()) {
    text += fmt::format("# pages {}\n", line(entry.second));
  }
  if (measurement.over_nodes()) text += network_text(measurement.ranks_on(), options.line_rate);
  if (!measurement.direct()) {
    text += fmt::format("# ropewalk hands every call to MPI: {}\n", measurement.reason());
  }
  return text + fmt::format("# up to {} rounds; float sum, root 0; us of the slowest rank\n",
                            measurement.rounds());
}

// The largest of the default sizes are left out where there is no memory for them.
void drop_sizes(CollectivesBenchOptions& options, const Ranks& ranks) {
  if (options.sizes_given) return;
  while (options.size_list.size() > 1 && !fits_memory(options, ranks)) options.size_list.pop_back();
}

void run_collectives(CollectivesBenchOptions options, const Ranks& ranks, Report& report) {
  if (ranks.size() == 1) {
    throw CollectiveError(ErrorCode::argument,
                          "ranks: a collective of one rank moves nothing; start at least two: "
                          "ropewalk run -n 2 -- ropewalk-bench-collectives");
  }
  drop_sizes(options, ranks);
  CollectivesMeasurement measurement(options, ranks);
  const CollectivesContext context{ranks.size(), ranks.library(), measurement.backings(),
                                   measurement.ranks_on(), options.line_rate};
  report.text(heading(measurement, options));
  measurement.budget().announce(report);
  const std::vector<CollectiveCase> all = cases(options, ranks.size());
  std::vector<CollectiveResult> results;
  std::vector<CollectiveResult> lines;  // of the table at hand
  for (std::size_t i = 0; i < all.size(); ++i) {
    report.progress(
        fmt::format("{} of {} bytes, {}", name(all[i].op), all[i].bytes, all[i].buffers),
        static_cast<double>(i) / static_cast<double>(all.size()));
    lines.push_back(measurement.measure(all[i]));
    report.row(row(context, lines.back()));
    if (i + 1 < all.size() && all[i].same_table(all[i + 1])) continue;
    report.text(table(lines));
    results.insert(results.end(), lines.begin(), lines.end());
    lines.clear();
  }
  report.summary(summary(results));
  // Every rank has gathered the same verdict.
  for (const CollectiveResult& one : results) {
    if (one.wrong.empty()) continue;
    throw CollectiveError(ErrorCode::internal, "received data: " + one.wrong);
  }
}

}  // namespace
}  // namespace ropewalk::bench

int main(int argc, char** argv) {
  using namespace ropewalk::bench;
  return run_main<CollectivesBenchOptions>(
      "Collectives through plain MPI and through ropewalk, beside the physical limit.",
      "ropewalk-bench-collectives", Need::mpi, run_collectives, argc, argv);
}
