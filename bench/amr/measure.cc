#include "amr/measure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "amr/simulation.hpp"
#include "amr/ways.hpp"
#include "common/report.hpp"
#include "common/statistics.hpp"

namespace ropewalk::bench {
namespace {

// What is assumed when the time is announced: a cell of a step, and blocks for each coarse one.
constexpr double usual_cell_us = 0.01;
constexpr int usual_parts = 4;
// Each way adds the ranks' sums in its own order: so much of the sum may differ.
constexpr double rounding = 1e-12;

int steps(const AmrOptions& options) { return options.meshes * options.steps; }
int rounds(const AmrOptions& options) { return options.common.rounds_or(15, 5); }

void run_once(const AmrOptions& options, const Ranks& ranks, AmrWay& way, AmrResult& result,
              AmrTimes& times) {
  AmrSimulation simulation(ranks, way, options.edge, result.cells);
  ranks.barrier();
  const double begin = now_us();
  simulation.run(options.meshes, options.steps);
  const double us = now_us() - begin;
  const AmrShares& shares = simulation.shares();
  const auto slowest =
      ranks.slowest({us, shares.communication, shares.reductions, shares.computing});
  times.us.push_back(slowest[0] / steps(options));
  times.communication_us.push_back(slowest[1] / steps(options));
  times.reductions_us.push_back(slowest[2] / steps(options));
  times.computing_us.push_back(slowest[3] / steps(options));
  result.messages = ranks.sum(simulation.messages()) / steps(options);
  result.bytes = ranks.sum(simulation.bytes()) / steps(options);
  const Buffer<double>& faces = simulation.outgoing();
  if (faces.size() > 0) result.backing = backing_of("arena", faces.data(), faces.bytes());
  const bool is_first = result.checksum == 0;
  if (is_first) result.checksum = simulation.checksum();
  const double off = std::abs(simulation.checksum() - result.checksum);
  if (!ranks.all(off <= rounding * std::abs(result.checksum))) result.is_verified = false;
}

// Ropewalk's communication over MPI's; 0 where one of them took none.
double ratio(const AmrResult& result) {
  const double plain = median(result.times.front().communication_us);
  return plain > 0 ? median(result.times.back().communication_us) / plain : 0;
}

}  // namespace

Expected expected(const AmrOptions& options, int cells) {
  const double all = usual_parts * static_cast<double>(options.edge * options.edge * options.edge) *
                     cells * cells * cells;
  const double run_us = all * usual_cell_us * steps(options);
  const auto ways = static_cast<double>(amr_way_names().size());
  return {ways * run_us * (rounds(options) + 1), ways * run_us * (Budget::least_rounds + 1)};
}

AmrResult measure(const AmrOptions& options, const Ranks& ranks, const Budget& budget, int cells) {
  AmrResult result;
  result.cells = cells;
  std::vector<std::unique_ptr<AmrWay>> ways;
  for (const std::string& name : amr_way_names()) {
    ways.push_back(make_amr_way(name, ranks));
    result.times.push_back({name});
  }
  int wanted = rounds(options);
  const double begun = now_us();
  for (int round = 0; round < wanted; ++round) {
    if (round == 1) wanted = budget.rounds(wanted, now_us() - begun);
    for (std::size_t i = 0; i < ways.size(); ++i) {
      const std::size_t at = (i + static_cast<std::size_t>(round)) % ways.size();
      run_once(options, ranks, *ways[at], result, result.times[at]);
    }
  }
  return result;
}

std::vector<Json> rows(const AmrOptions& options, const Ranks& ranks, const AmrResult& result) {
  std::vector<Json> all;
  for (const AmrTimes& one : result.times) {
    Json row = {{"bench", "amr"},
                {"cells", result.cells},
                {"blocks", options.edge},
                {"meshes", options.meshes},
                {"steps", options.steps},
                {"ranks", ranks.size()},
                {"mpi", ranks.library()},
                {"strategy", one.way},
                {"pages", result.backing.all_huge ? "huge" : "small"},
                {"buffers", "hot"},
                {"messages", result.messages},
                {"bytes", result.bytes},
                {"mb_per_s", mb_per_s(result.bytes, median(one.communication_us))},
                {"time_us", to_json(summarize(one.us))},
                {"communication_us", median(one.communication_us)},
                {"reductions_us", median(one.reductions_us)},
                {"computing_us", median(one.computing_us)},
                {"checksum", result.checksum},
                {"verified", result.is_verified}};
    if (&one != &result.times.front()) {
      row["plain_us"] = median(result.times.front().us);
      row["communication_ratio"] = ratio(result);
    }
    all.push_back(std::move(row));
  }
  return all;
}

std::string table(const std::vector<AmrResult>& results) {
  TextTable lines(
      {"cells", "messages", "way", "step", "communication", "reductions", "computing", "ratio"});
  for (const AmrResult& result : results) {
    for (const AmrTimes& one : result.times) {
      const bool is_plain = &one == &result.times.front();
      lines.add({std::to_string(result.cells), fmt::format("{:.0f}", result.messages), one.way,
                 fmt::format("{:.1f}", median(one.us)),
                 fmt::format("{:.1f}", median(one.communication_us)),
                 fmt::format("{:.1f}", median(one.reductions_us)),
                 fmt::format("{:.1f}", median(one.computing_us)),
                 is_plain ? "-" : fmt::format("{:.2f}", ratio(result))});
    }
  }
  return "\nmicroseconds of a step\n" + lines.text();
}

std::string summary(const std::vector<AmrResult>& results) {
  const auto [least, most] =
      std::ranges::minmax_element(results, {}, [](const AmrResult& one) { return ratio(one); });
  const bool right = std::ranges::all_of(results, &AmrResult::is_verified);
  return fmt::format("communication takes {:.2f} to {:.2f} of MPI's; {}", ratio(*least),
                     ratio(*most), right ? "all checksums equal" : "CHECKSUMS DIFFER");
}

}  // namespace ropewalk::bench
