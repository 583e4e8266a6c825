// ropewalk-bench-amr: steps of a program on a mesh that is refined where it must be, by the plain
// MPI and by ropewalk.
#include <fmt/format.h>

#include <algorithm>

#include "amr/measure.hpp"
#include "amr/options.hpp"
#include "common/main.hpp"

namespace ropewalk::bench {
namespace {

void run_amr(const AmrOptions& options, const Ranks& ranks, Report& report) {
  std::vector<Expected> parts;
  for (const int cells : options.cell_list) parts.push_back(expected(options, cells));
  Budget budget(options.common, ranks, parts);
  budget.announce(report);
  std::vector<AmrResult> results;
  for (const int cells : options.cell_list) {
    report.progress(
        fmt::format("amr, blocks of {} cells an edge", cells),
        static_cast<double>(results.size()) / static_cast<double>(options.cell_list.size()));
    budget.begin();
    results.push_back(measure(options, ranks, budget, cells));
    for (const Json& row : rows(options, ranks, results.back())) report.row(row);
  }
  report.text(table(results));
  report.summary(summary(results));
  if (std::ranges::all_of(results, &AmrResult::is_verified)) return;
  throw CollectiveError(ErrorCode::internal, "amr: the ways have different sums of all cells");
}

}  // namespace
}  // namespace ropewalk::bench

int main(int argc, char** argv) {
  using namespace ropewalk::bench;
  return run_main<AmrOptions>("Steps on an adaptively refined mesh, by plain MPI and by ropewalk.",
                              "ropewalk-bench-amr", Need::mpi, run_amr, argc, argv);
}
