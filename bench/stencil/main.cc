// ropewalk-bench-stencil: steps of a stencil code on a grid of ranks in three dimensions, by the
// ways that MPI offers and by ropewalk.
#include <fmt/format.h>

#include "common/main.hpp"
#include "common/parse.hpp"
#include "stencil/measure.hpp"
#include "stencil/options.hpp"
#include "stencil/tables.hpp"

namespace ropewalk::bench {
namespace {

void run_stencil(const StencilOptions& options, const Ranks& ranks, Report& report) {
  StencilMeasurement measurement(options, ranks);
  const StencilContext context{ranks.size(), ranks.library(), measurement.grid().extents(),
                               options.threads, options.periodic};
  report.text(fmt::format("# ranks {}{}, {} thread{} each, up to {} rounds\n",
                          dotted(context.rank_grid), context.periodic ? ", periodic" : "",
                          context.threads, context.threads == 1 ? "" : "s", measurement.rounds()));
  measurement.budget().announce(report);
  std::vector<StencilSizeResult> results;
  const std::size_t all = options.memory_list.size() * options.size_list.size();
  for (const std::string& memory : options.memory_list) {
    for (const std::size_t size : options.size_list) {
      const auto done = static_cast<double>(results.size());
      report.progress(fmt::format("stencil, faces of {}, {} memory", size_text(size), memory),
                      done / static_cast<double>(all));
      results.push_back(measurement.measure(memory, size));
      for (const Json& row : rows(context, results.back())) report.row(row);
    }
    report.text(fmt::format("# pages {}\n", line(results.back().backing)));
  }
  for (const Computing computing : options.computing_list) report.text(table(results, computing));
  report.summary(summary(results));
  for (const StencilSizeResult& result : results) {
    if (result.wrong.empty()) continue;
    throw CollectiveError(ErrorCode::internal, "received data: " + result.wrong);
  }
}

}  // namespace
}  // namespace ropewalk::bench

int main(int argc, char** argv) {
  using namespace ropewalk::bench;
  return run_main<StencilOptions>(
      "Steps of a stencil code in three dimensions, by the ways of plain MPI and by ropewalk.",
      "ropewalk-bench-stencil", Need::mpi, run_stencil, argc, argv);
}
