// ropewalk-bench-fft: Fourier transforms of a divided grid in three dimensions, whose transposes
// are made by the ways that MPI offers and by ropewalk.
#include <fmt/format.h>

#include "common/main.hpp"
#include "fft/measure.hpp"
#include "fft/options.hpp"
#include "fft/tables.hpp"

namespace ropewalk::bench {
namespace {

void run_fft(const FftOptions& options, const Ranks& ranks, Report& report) {
  const std::vector<FftCase> cases = fft_cases(options, ranks.size());
  LineLibrary library;
  ranks.collectively([&] { library = LineLibrary(options.library); });
  ThreadTeam team(ranks.communicator(), {.threads = options.threads});
  std::vector<Expected> parts;
  parts.reserve(cases.size());
  for (const FftCase& one : cases) parts.push_back(expected(options, one));
  Budget budget(options.common, ranks, parts);
  budget.announce(report);
  std::vector<FftResult> results;
  for (const FftCase& one : cases) {
    report.progress(
        fmt::format("fft, grid of {} x {} x {}", one.cells[0], one.cells[1], one.cells[2]),
        static_cast<double>(results.size()) / static_cast<double>(cases.size()));
    budget.begin();
    results.push_back(measure(options, ranks, budget, library, team, one));
    for (const Json& row : rows(options, ranks, results.back())) report.row(row);
  }
  report.text(fmt::format("# pages {}\n", line(results.back().backing)));
  report.text(table(results));
  report.summary(summary(results));
  for (const FftResult& result : results) {
    if (result.wrong.empty()) continue;
    throw CollectiveError(ErrorCode::internal, "transforms: " + result.wrong);
  }
}

}  // namespace
}  // namespace ropewalk::bench

int main(int argc, char** argv) {
  using namespace ropewalk::bench;
  return run_main<FftOptions>(
      "Fourier transforms in three dimensions, transposed by plain MPI and by ropewalk.",
      "ropewalk-bench-fft", Need::mpi, run_fft, argc, argv);
}
