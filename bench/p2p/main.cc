// ropewalk-bench-p2p: messages between the two ranks of each pair, through the plain MPI and
// through ropewalk, beside the physical limit.
#include <fmt/format.h>

#include "common/main.hpp"
#include "common/parse.hpp"
#include "p2p/devices.hpp"
#include "p2p/measure.hpp"
#include "p2p/options.hpp"
#include "p2p/tables.hpp"

namespace ropewalk::bench {
namespace {

std::string heading(const P2pContext& context, const P2pMeasurement& measurement) {
  std::string text;
  for (const auto& entry : context.backings) {
    text += fmt::format("# pages {}\n", line(entry.second));
  }
  if (!measurement.reason().empty()) {
    text += fmt::format("# ropewalk hands every message to MPI: {}\n", measurement.reason());
  }
  if (!measurement.is_limited()) {
    text += "# no limit: not all ranks map each other's memory\n";
  }
  return text + fmt::format("# {} pair{}, up to {} rounds; us of a message, slowest rank\n",
                            context.pairs(), context.pairs() == 1 ? "" : "s", measurement.rounds());
}

// Returns what was wrong first, on every rank.
std::string measure_devices(const P2pOptions& options, const Ranks& ranks, Report& report) {
  report.progress("memory of devices", 0.99);
  const std::vector<Json> rows = device_rows(options, ranks);
  std::string wrong;
  for (const Json& row : rows) {
    report.row(row);
    if (wrong.empty() && row.contains("wrong")) wrong = row["wrong"].get<std::string>();
  }
  report.text(device_table(rows));
  return wrong;
}

void run_p2p(const P2pOptions& options, const Ranks& ranks, Report& report) {
  P2pMeasurement measurement(options, ranks);
  const P2pContext context{ranks.size(), ranks.library(), measurement.backings()};
  report.text(heading(context, measurement));
  measurement.budget().announce(report);
  const std::vector<P2pCase> all = cases(options);
  std::vector<P2pResult> results;
  std::vector<P2pResult> lines;  // of the table at hand
  for (std::size_t i = 0; i < all.size(); ++i) {
    report.progress(fmt::format("{} of {}, {} memory, {}", name(all[i].mode),
                                size_text(all[i].bytes), all[i].memory, all[i].buffers),
                    static_cast<double>(i) / static_cast<double>(all.size()));
    lines.push_back(measurement.measure(all[i]));
    for (const Json& row : rows(context, lines.back())) report.row(row);
    if (i + 1 < all.size() && all[i].same_table(all[i + 1])) continue;
    report.text(table(context, lines));
    results.insert(results.end(), lines.begin(), lines.end());
    lines.clear();
  }
  const std::string wrong = options.devices ? measure_devices(options, ranks, report) : "";
  report.summary(results.empty() ? "no memory of the host measured" : summary(results));
  if (!wrong.empty()) throw CollectiveError(ErrorCode::internal, "received data: " + wrong);
  // Every rank has gathered the same verdict.
  for (const P2pResult& one : results) {
    if (one.wrong.empty()) continue;
    throw CollectiveError(ErrorCode::internal, "received data: " + one.wrong);
  }
}

}  // namespace
}  // namespace ropewalk::bench

int main(int argc, char** argv) {
  using namespace ropewalk::bench;
  return run_main<P2pOptions>(
      "Messages between two ranks through plain MPI and through ropewalk, beside the "
      "physical limit.",
      "ropewalk-bench-p2p", Need::mpi, run_p2p, argc, argv);
}
