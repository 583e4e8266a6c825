// ropewalk-bench-overlap: how much of an exchange hides behind the computation of the interior,
// over the number of comm threads (Meadows et al. 2018).
#include <fmt/format.h>

#include "common/parse.hpp"
#include "overlap/measure.hpp"
#include "overlap/options.hpp"
#include "overlap/tables.hpp"

namespace ropewalk::bench {
namespace {

void run_overlap(const OverlapOptions& options, const Ranks& ranks, Report& report) {
  OverlapMeasurement measurement(options, ranks);
  const OverlapContext context{ranks.size(), measurement.threads(), options.passes, ranks.library(),
                               measurement.grid()};
  report.text(fmt::format(
      "# ranks {} x {} threads{}, {} rounds\n", dotted(context.rank_grid), context.threads,
      measurement.crowded() ? ", more than there are cores" : "", measurement.rounds()));
  std::vector<OverlapResult> all;
  const double each =
      1.0 / static_cast<double>(options.sizes.size() * options.strategy_list.size());
  double share = 0;
  for (const int L : options.sizes) {
    for (const Strategy strategy : options.strategy_list) {
      const auto results = measurement.measure(L, strategy, report, share, each);
      share += each;
      for (const OverlapResult& one : results) report.row(overlap_row(context, one));
      report.text(overlap_table(context, results));
      all.insert(all.end(), results.begin(), results.end());
    }
  }
  report.summary(overlap_summary(all));
  for (const OverlapResult& one : all) {
    if (!one.verified) throw JointError(ErrorCode::internal, "overlap: " + one.wrong);
  }
}

}  // namespace
}  // namespace ropewalk::bench

int main(int argc, char** argv) {
  using namespace ropewalk::bench;
  OverlapOptions options;
  CLI::App app("How much of a halo exchange hides behind computation, by comm threads.",
               "ropewalk-bench-overlap");
  describe(app, options);
  const Program program{
      &app, &options.common, Need::mpi, [&] { return check(options); },
      [&](const Ranks& ranks, Report& report) { run_overlap(options, ranks, report); }};
  return run(program, argc, argv);
}
