// ropewalk-bench-comms: the halo exchange bandwidths of Boyle et al. 2017, tables I to IV, on this
// machine and its MPI.
#include <fmt/format.h>

#include "common/main.hpp"
#include "common/parse.hpp"
#include "comms/measure.hpp"
#include "comms/options.hpp"
#include "comms/tables.hpp"

namespace ropewalk::bench {
namespace {

std::string heading(const Context& context, const Measurement& measurement) {
  std::string text;
  for (const auto& entry : context.backings) {
    text += fmt::format("# pages {}\n", line(entry.second));
  }
  return text + fmt::format("# ranks {}, {} lane{} a rank, up to {} rounds; {}\n",
                            dotted(context.rank_grid), context.lanes, context.lanes == 1 ? "" : "s",
                            measurement.rounds(),
                            context.line_rate_mb > 0
                                ? fmt::format("line rate {:.0f} MB/s one way", context.line_rate_mb)
                                : "limit: all ranks copy the same bytes at once, no messages");
}

void print(const CommsOptions& options, const Context& context, const std::vector<Result>& results,
           Report& report) {
  for (const std::string& buffers : options.buffer_list) {
    report.text(paper_table(context, results, buffers));
    const Column& best = best_column(context, results);
    for (const Column& column : results.front().columns) {
      if (column.strategy == "limit") continue;
      // The first look shows the details of one column; all of them are in the JSON rows.
      const bool shown = column.strategy == best.strategy && column.pages == best.pages;
      if (options.common.quick && !shown) continue;
      report.text(itt_table(context, results, buffers, column.strategy, column.pages));
    }
  }
}

void run_comms(const CommsOptions& options, const Ranks& ranks, Report& report) {
  const std::vector<int> grid = rank_grid(options, ranks.size());
  const std::vector<LocalLattice> list = lattices(options, grid);
  Measurement measurement(options, ranks, grid, list);
  const Context context{ranks.size(), measurement.lanes(),  ranks.library(),
                        grid,         options.line_rate_mb, measurement.backings()};
  report.text(heading(context, measurement));
  measurement.budget().announce(report);
  std::vector<Result> results;
  const double each = 1.0 / static_cast<double>(list.size() * options.buffer_list.size());
  std::string wrong;
  for (const LocalLattice& lattice : list) {
    for (const std::string& buffers : options.buffer_list) {
      const double done = each * static_cast<double>(results.size());
      results.push_back(measurement.measure(lattice, buffers, report, done, each));
      for (const Json& row : rows(context, results.back())) report.row(row);
      for (const Column& column : results.back().columns) {
        if (wrong.empty()) wrong = column.wrong;
      }
    }
  }
  print(options, context, results, report);
  report.summary(summary(context, results));
  // Every rank has gathered the same verdict.
  if (!wrong.empty()) throw CollectiveError(ErrorCode::internal, "received data: " + wrong);
}

}  // namespace
}  // namespace ropewalk::bench

int main(int argc, char** argv) {
  using namespace ropewalk::bench;
  return run_main<CommsOptions>(
      "Bandwidth of Cartesian halo exchange by size, strategy and kind of page.",
      "ropewalk-bench-comms", Need::mpi, run_comms, argc, argv);
}
