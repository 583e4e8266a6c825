// ropewalk-bench-collectives: collectives through the plain MPI, through ropewalk, and as fast as
// their loads and stores alone, or over nodes the bytes on the network.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <utility>

#include "collectives/measure.hpp"
#include "collectives/options.hpp"
#include "collectives/tables.hpp"

namespace ropewalk::bench {
namespace {

struct Case {
  std::string memory;
  std::string buffers;
  Op op;
};

std::vector<Case> cases(const CollectivesOptions& options) {
  std::vector<Case> all;
  for (const std::string& memory : options.memory_list) {
    for (const std::string& buffers : options.buffer_list) {
      for (const Op op : options.op_list) all.push_back({memory, buffers, op});
    }
  }
  // A barrier has no buffers: once is enough.
  bool seen = false;
  std::erase_if(
      all, [&](const Case& one) { return one.op == Op::barrier && std::exchange(seen, true); });
  return all;
}

std::string network_text(const std::vector<int>& ranks_on, double line_rate) {
  const std::string rate =
      line_rate > 0
          ? fmt::format("what a node's link must carry, at {:.1f} MB/s each way", line_rate)
          : "none: ROPEWALK_LINE_RATE is not set";
  return fmt::format("# {} nodes of {} ranks; limit: {}\n", ranks_on.size(),
                     fmt::join(ranks_on, ","), rate);
}

std::string heading(const CollectivesMeasurement& measurement, const CollectivesOptions& options) {
  std::string text;
  for (const auto& entry : measurement.backings()) {
    text += fmt::format("# pages {}\n", line(entry.second));
  }
  if (measurement.over_nodes()) text += network_text(measurement.ranks_on(), options.line_rate);
  if (!measurement.direct()) {
    text += fmt::format("# ropewalk hands every call to MPI: {}\n", measurement.reason());
  }
  return text + fmt::format("# {} rounds; float sum, root 0; us of the slowest rank\n",
                            measurement.rounds());
}

// The largest of the default sizes are left out where there is no memory for them.
void drop_sizes(CollectivesOptions& options, const Ranks& ranks) {
  if (options.sizes_given) return;
  while (options.size_list.size() > 1 && !fits_memory(options, ranks)) options.size_list.pop_back();
}

void run_collectives(CollectivesOptions options, const Ranks& ranks, Report& report) {
  if (ranks.size() == 1) {
    throw JointError(ErrorCode::argument,
                     "ranks: a collective of one rank moves nothing; start at least two: "
                     "ropewalk run -n 2 -- ropewalk-bench-collectives");
  }
  drop_sizes(options, ranks);
  CollectivesMeasurement measurement(options, ranks);
  const CollectivesContext context{ranks.size(), ranks.library(), measurement.backings(),
                                   measurement.ranks_on(), options.line_rate};
  report.text(heading(measurement, options));
  const std::vector<Case> all = cases(options);
  std::vector<CollectiveResult> results;
  std::string wrong;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto& [memory, buffers, op] = all[i];
    std::vector<CollectiveResult> lines;
    for (const std::size_t bytes : sizes_of(options, op, ranks.size())) {
      report.progress(fmt::format("{} of {} bytes, {}", name(op), bytes, buffers),
                      static_cast<double>(i) / static_cast<double>(all.size()));
      lines.push_back(measurement.measure(op, bytes, memory, buffers));
      report.row(row(context, lines.back()));
      if (wrong.empty()) wrong = lines.back().wrong;
    }
    if (lines.empty()) continue;
    report.text(table(lines));
    results.insert(results.end(), lines.begin(), lines.end());
  }
  report.summary(summary(results));
  // Every rank has gathered the same verdict.
  if (!wrong.empty()) throw JointError(ErrorCode::internal, "received data: " + wrong);
}

}  // namespace
}  // namespace ropewalk::bench

int main(int argc, char** argv) {
  using namespace ropewalk::bench;
  CollectivesOptions options;
  CLI::App app("Collectives through plain MPI and through ropewalk, beside the physical limit.",
               "ropewalk-bench-collectives");
  describe(app, options);
  const Program program{
      &app, &options.common, Need::mpi, [&] { return check(options); },
      [&](const Ranks& ranks, Report& report) { run_collectives(options, ranks, report); }};
  return run(program, argc, argv);
}
