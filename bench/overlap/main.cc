// ropewalk-bench-overlap: how much of an exchange hides behind the computation of the interior,
// over the number of comm threads (Meadows et al. 2018).
#include <fmt/format.h>

#include "common/main.hpp"
#include "common/parse.hpp"
#include "overlap/measure.hpp"
#include "overlap/options.hpp"
#include "overlap/tables.hpp"

namespace ropewalk::bench {
namespace {

void run_overlap(const OverlapOptions& options, const Ranks& ranks, Report& report) {
  OverlapMeasurement measurement(options, ranks);
  const int nodes = ranks.size() / static_cast<int>(ranks.max(ranks.node_size()));
  const OverlapContext context{ranks.size(), nodes, measurement.threads(), options.precision,
                               ranks.library()};
  report.text(fmt::format("# {} node{}, ranks {} x {} threads, up to {} rounds\n", nodes,
                          nodes == 1 ? "" : "s", ranks.size(), context.threads,
                          measurement.rounds()));
  measurement.budget().announce(report);
  std::vector<OverlapResult> all;
  const double each =
      1.0 / static_cast<double>(options.sizes.size() * options.operator_list.size());
  double share = 0;
  for (const std::string& op : options.operator_list) {
    for (const int L : options.sizes) {
      const OverlapResults results = measurement.measure(L, op, report, share, each);
      share += each;
      for (const OverlapResult& one : results.cases) report.row(overlap_row(context, results, one));
      report.text(overlap_table(context, results));
      all.insert(all.end(), results.cases.begin(), results.cases.end());
    }
  }
  report.summary(overlap_summary(all));
  for (const OverlapResult& one : all) {
    if (one.verified) continue;
    throw CollectiveError(
        ErrorCode::internal,
        fmt::format("overlap: {} L={}: relative error {:.1e}", one.op, one.L, one.error));
  }
}

}  // namespace
}  // namespace ropewalk::bench

int main(int argc, char** argv) {
  using namespace ropewalk::bench;
  return run_main<OverlapOptions>(
      "How much of its halo exchange a lattice operator hides, by comm threads.",
      "ropewalk-bench-overlap", Need::mpi, run_overlap, argc, argv);
}
