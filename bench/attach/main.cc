// ropewalk-bench-attach: what it costs to make memory of another process addressable, how much of
// it a registration cache saves, and what such a cache counts of recorded traces (Hashmi et al.
// 2018).
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "attach/options.hpp"
#include "attach/steps.hpp"
#include "attach/tables.hpp"
#include "attach/trace.hpp"
#include "common/budget.hpp"
#include "common/main.hpp"
#include "common/parse.hpp"
#include "common/timed_threads.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::bench {
namespace {

constexpr double sample_us = 2000;          // samples with the cache last about this long
constexpr double usual_mb_per_s = 3000;     // assumed when the time is announced
constexpr double contention_us = 10'000;    // each pattern and size
constexpr int contention_rounds = 9;        // at most
constexpr std::size_t contended = 8 << 20;  // copies of up to half of it

class AttachBenchmark {
 public:
  AttachBenchmark(const AttachOptions& options, const Ranks& ranks, Report& report)
      : options_(options),
        ranks_(ranks),
        report_(report),
        rounds_(options.common.rounds_or(25, 7)),
        budget_(options.common, ranks, expected()) {}

  void run() {
    report_.text(
        fmt::format("# each rank copies from the next, all at once; up to {} rounds\n", rounds_));
    budget_.announce(report_);
    if (options_.wants("steps")) measure_steps();
    if (options_.wants("contention")) measure_contention();
    if (options_.wants("replay")) replay_traces();
    report_.summary(summary_.empty() ? "nothing was measured" : summary_);
    if (!verified_) throw CollectiveError(ErrorCode::internal, "attach: data arrived wrong");
  }

 private:
  Json common() const {
    return {{"bench", "attach"}, {"ranks", ranks_.size()}, {"mpi", ranks_.library()}};
  }

  // Two mechanisms, each with the cache and without.
  std::vector<Expected> expected() const {
    std::vector<Expected> all;
    if (!options_.wants("steps")) return {Expected{}};
    for (int way = 0; way < 2; ++way) {
      for (const std::size_t bytes : options_.size_list) {
        all.push_back(sampling(2, rounds_, sample_us, static_cast<double>(bytes) / usual_mb_per_s));
      }
    }
    return all;
  }

  void note(const std::string& text) {
    if (!summary_.empty()) summary_ += "; ";
    summary_ += text;
  }

  void measure_steps() {
    const AttachWays ways(ranks_, std::ranges::max(options_.size_list));
    std::vector<AttachResult> results;
    for (const auto& way : ways.all()) {
      for (const std::size_t bytes : options_.size_list) {
        report_.progress(fmt::format("{} of {}", way->name(), size_text(bytes)), 0.3);
        budget_.begin();
        for (AttachResult& result : measure(*way, bytes)) {
          report_.row(row(common(), result));
          results.push_back(std::move(result));
        }
      }
    }
    report_.text(steps_table(results, ways.xpmem_reason()));
    const AttachResult& off = results[0];
    const AttachResult& on = results[1];
    note(fmt::format("{} {}: {:.2f} us without a registration cache, {:.2f} us with it{}",
                     off.mechanism, size_text(off.bytes), median_total(off), median_total(on),
                     verified_ ? "; all data verified" : "; DATA WRONG"));
  }

  // Without the cache and with it, in turns.
  std::vector<AttachResult> measure(AttachWay& way, std::size_t bytes) {
    std::vector<AttachResult> both = {{way.name(), bytes, false, {}, true},
                                      {way.name(), bytes, true, {}, true}};
    const double once = std::max(ranks_.max(total(way.cached(bytes, 1))), 0.1);
    const int count = static_cast<int>(std::clamp(sample_us / once, 1.0, 1000.0));
    int rounds = rounds_;
    const double begun = now_us();
    for (int round = 0; round < rounds; ++round) {
      if (round == 1) rounds = budget_.rounds(rounds_, now_us() - begun);
      both[0].rounds.push_back(slowest(way.fresh(bytes)));
      both[1].rounds.push_back(slowest(way.cached(bytes, count)));
    }
    verified_ = ranks_.all(way.verified()) && verified_;
    for (AttachResult& result : both) result.verified = verified_;
    return both;
  }

  // The times of the rank whose sum is the largest.
  AttachTimes slowest(const AttachTimes& own) const {
    AttachTimes most{};
    const std::vector<double> mine(own.begin(), own.end());
    for (const std::vector<double>& rank : ranks_.gather(mine)) {
      AttachTimes times{};
      std::ranges::copy(rank, times.begin());
      if (total(times) > total(most)) most = times;
    }
    return most;
  }

  void measure_contention() {
    report_.progress("contention", 0.7);
    const std::vector<TuneCost> costs =
        kernel_costs(ranks_, contended, {contention_us, contention_rounds});
    double most = 0;
    for (const TuneCost& cost : costs) {
      const double alone = alone_us(costs, cost);
      most = std::max(most, cost.us / alone);
      report_.row(row(common(), cost, alone));
    }
    report_.text(contention_table(costs));
    note(fmt::format("{} ranks copying at once by cma: up to {:.1f} x one alone", ranks_.size(),
                     most));
  }

  void replay_traces() {
    std::vector<ReplayResult> results;
    for (const std::string& file : options_.trace_list) {
      const std::vector<RegistrationRequest> requests = read_trace(file);
      const std::string trace = std::filesystem::path(file).stem();
      for (const std::size_t capacity : options_.capacity_list) {
        for (const auto eviction : {Eviction::fifo, Eviction::lru}) {
          results.push_back({trace, eviction, capacity, requests.size(),
                             replay_registrations(requests, capacity, eviction)});
          report_.row(row(common(), results.back()));
        }
      }
    }
    report_.text(replay_table(results));
    note(fmt::format("{} traces replayed", options_.trace_list.size()));
  }

  const AttachOptions& options_;
  const Ranks& ranks_;
  Report& report_;
  int rounds_;
  Budget budget_;
  std::string summary_;
  bool verified_ = true;
};

// A rank that is alone reads its own memory.
void require_one_node(const Ranks& ranks) {
  if (ranks.all(ranks.node_size() == ranks.size())) return;
  throw CollectiveError(ErrorCode::argument,
                        "ranks: on several nodes, expected all of them on one; memory is attached "
                        "inside a node, so start them there");
}

}  // namespace
}  // namespace ropewalk::bench

int main(int argc, char** argv) {
  using namespace ropewalk::bench;
  return run_main<AttachOptions>(
      "Cost of attaching memory of other processes, and what a registration cache saves of it.",
      "ropewalk-bench-attach", Need::mpi,
      [](const AttachOptions& options, const Ranks& ranks, Report& report) {
        require_one_node(ranks);
        AttachBenchmark(options, ranks, report).run();
      },
      argc, argv);
}
