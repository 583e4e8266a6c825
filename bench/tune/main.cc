// ropewalk-bench-tune measures what the thresholds of ropewalk should be on this machine, and what
// each mechanism costs. `ropewalk tune` starts it and writes the profile.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "common/budget.hpp"
#include "p2p/measure.hpp"
#include "tune/measure.hpp"
#include "tune/options.hpp"
#include "tune/rows.hpp"
#include "tune/wire.hpp"

namespace ropewalk::bench {
namespace {

constexpr double usual_way_us = 60'000;  // for one way at one size, with time enough
constexpr double least_way_us = 2'000;
// Messages by every mechanism take this share of the time, which the measurement of bench p2p
// divides among its own cases.
constexpr double share_of_choice = 0.25;

// Between nodes samples are fewer and longer: ranks that share cores are in step with each other
// for some milliseconds and then out of step, and a network that limits its rate by tokens lets
// some pass at once after a pause.
constexpr double longest_sample_over_nodes_us = 30'000;
constexpr int rounds_over_nodes = 7;
constexpr double usual_way_over_nodes_us = rounds_over_nodes * longest_sample_over_nodes_us;

const Op costed[] = {Op::allreduce, Op::reduce, Op::bcast,   Op::allgather,
                     Op::alltoall,  Op::gather, Op::scatter, Op::reduce_scatter};

// A Part is one piece of the work: its name, how many samples it takes (one for each way at one
// size), and the function that does it.
struct Part {
  std::string what;
  int samples = 0;
  std::function<void(const Effort&)> work;
};

class Tuning {
 public:
  Tuning(const TuneOptions& options, const Ranks& ranks, Report& report)
      : options_(options), ranks_(ranks), report_(report), measurement_(ranks) {}

  void run() {
    check_groups();
    report_.row(signature_row());
    report_.row(situation_row(measurement_));
    if (options_.between) measurement_.measure_between();
    over_nodes() ? add_over_nodes() : add_on_node();
    measure_parts();
    if (chooses()) measure_choice();
    int others = 0;
    for (const TuneAnswer& one : answers_) others += one.finding.changes(one.before) ? 1 : 0;
    report_.summary(fmt::format("{} thresholds, {} of them changed", answers_.size(), others));
  }

 private:
  bool over_nodes() const { return measurement_.places().over_nodes(); }
  bool chooses() const { return options_.asks("channel") && ranks_.size() % 2 == 0; }
  void check_groups() const;
  void add_on_node();
  void add_over_nodes();
  void add_wire();
  void add_copies();
  void add_questions(const std::string& group);
  void add_costs();
  void measure_parts();
  void measure_choice();
  void keep(const std::vector<TuneCost>& costs) {
    for (const TuneCost& one : costs) report_.row(to_row(one));
  }
  double longest_way_us() const { return over_nodes() ? usual_way_over_nodes_us : usual_way_us; }
  double share_of_parts() const { return chooses() ? 1 - share_of_choice : 1; }
  double seconds() const {
    const CommonOptions& common = options_.common;
    return common.time_seconds > 0 ? common.time_seconds : CommonOptions::default_seconds;
  }

  const TuneOptions& options_;
  const Ranks& ranks_;
  Report& report_;
  TuneMeasurement measurement_;
  std::vector<Part> parts_;
  std::vector<TuneAnswer> answers_;
};

// Says which groups can be measured here, where one was asked for that cannot.
void Tuning::check_groups() const {
  const bool here =
      options_.asks("copies") || options_.asks("channel") || options_.asks("collectives");
  const bool away = options_.asks("wire") || options_.asks("lanes") || options_.asks("nodes");
  if (over_nodes() ? !here : !away) return;
  throw CollectiveError(
      ErrorCode::argument,
      fmt::format("--only: {}, expected some of {}: the ranks are on {}", options_.only,
                  over_nodes() ? "wire, lanes, nodes" : "copies, channel, collectives",
                  over_nodes() ? "several nodes" : "one node"));
}

void Tuning::add_on_node() {
  if (!options_.between) {
    add_copies();
    add_questions("channel");
    add_questions("collectives");
  }
  if (options_.asks("collectives")) add_costs();
}

void Tuning::add_over_nodes() {
  if (!options_.between) {
    add_wire();
    add_questions("nodes");
  }
  if (!options_.asks("nodes")) return;
  for (const Op op : costed) {
    if (options_.common.quick && op != Op::allreduce) continue;
    parts_.push_back(
        {fmt::format("{} over nodes", name(op)), measurement_.samples_of_costs(),
         [this, op](const Effort& one) { keep(measurement_.costs_over_nodes(op, one)); }});
  }
}

void Tuning::add_wire() {
  const std::size_t largest = measurement_.largest();
  if (options_.asks("wire")) {
    parts_.push_back({"wire", samples_of_wire(largest), [this, largest](const Effort& effort) {
                        keep(wire_costs(ranks_, measurement_.places(), largest, effort));
                      }});
  }
  if (!options_.asks("lanes")) return;
  parts_.push_back({"lanes", samples_of_lanes(largest), [this, largest](const Effort& effort) {
                      const LanesFound found =
                          find_lanes(ranks_, measurement_.places(), largest, effort);
                      keep(found.costs);
                      for (const Json& row : to_rows(found)) report_.row(row);
                    }});
}

void Tuning::add_copies() {
  if (!options_.asks("copies")) return;
  const std::size_t largest = measurement_.largest();
  parts_.push_back(
      {"copies", samples_of_copies(largest, ranks_.size()), [this, largest](const Effort& effort) {
         keep(flag_costs(ranks_, effort));
         keep(domain_costs(ranks_, effort));
         keep(copy_costs(ranks_, largest, effort));
         keep(kernel_costs(ranks_, largest, effort));
         keep(reader_costs(ranks_, largest, effort));
       }});
}

void Tuning::add_questions(const std::string& group) {
  if (!options_.asks(group)) return;
  for (const Question& question : group == "nodes" ? questions_over_nodes() : questions()) {
    if (question.of_channel != (group == "channel")) continue;
    parts_.push_back({std::string(question.name()), measurement_.samples_of(question),
                      [this, &question](const Effort& effort) {
                        answers_.push_back(measurement_.answer(question, effort));
                        report_.row(to_row(answers_.back()));
                        report_.text("# " + line(answers_.back()) + "\n");
                      }});
  }
}

void Tuning::add_costs() {
  for (const Op op : costed) {
    if (options_.common.quick && op != Op::allreduce) continue;
    for (const TuneMemory memory : {TuneMemory::arena, TuneMemory::all_private}) {
      parts_.push_back(
          {fmt::format("{} in {} memory", name(op), name(memory)), measurement_.samples_of_costs(),
           [this, op, memory](const Effort& one) { keep(measurement_.costs(op, memory, one)); }});
    }
  }
}

// Measures all parts. Time that one part does not need goes to those after it.
void Tuning::measure_parts() {
  CommonOptions common = options_.common;
  common.time_seconds = seconds() * share_of_parts();
  std::vector<Expected> expected;
  for (const Part& part : parts_) {
    expected.push_back({part.samples * longest_way_us(), part.samples * least_way_us});
  }
  Budget budget(common, ranks_, expected);
  report_.announce(
      fmt::format("about {}, with as many rounds as fit (--time)", duration_text(seconds())),
      seconds());
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const Part& part = parts_[i];
    const double share = static_cast<double>(i) / static_cast<double>(parts_.size());
    report_.progress(part.what, share * share_of_parts());
    budget.begin();
    Effort effort;
    if (over_nodes()) {
      effort.longest_sample_us = longest_sample_over_nodes_us;
      effort.rounds = rounds_over_nodes;
    }
    if (part.samples > 0) {
      // The clocks of the ranks differ, but all must measure with the same effort.
      const double left_us = ranks_.max(budget.left_us());
      effort.way_us = std::clamp(left_us / part.samples, least_way_us, longest_way_us());
    }
    part.work(effort);
  }
}

// Measures messages with the values that were found, and by each mechanism. The rows show whether
// the choice is right, and what each mechanism costs.
void Tuning::measure_choice() {
  const tuning::Trial trial(measurement_.found());
  P2pOptions p2p;
  p2p.common = options_.common;
  p2p.common.time_seconds = seconds() * share_of_choice;
  p2p.modes = "latency";
  p2p.modes_given = true;
  p2p.buffers = "hot";
  p2p.buffers_given = true;
  p2p.memory = "arena,private";
  p2p.mechanisms = "all";
  p2p.sizes = options_.between ? "32,128,512,1536,3K,6K,12K,24K,48K,96K,192K,384K,768K,1536K,3M,6M"
                               : "8,64,256,1K,2K,4K,8K,16K,32K,64K,128K,256K,512K,1M,2M,4M,8M,16M";
  if (p2p.common.quick) p2p.sizes = "8,4K,256K";
  p2p.sizes_given = true;
  check(p2p);
  P2pMeasurement messages(p2p, ranks_);
  const std::vector<P2pCase> all = cases(p2p);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const double share = static_cast<double>(i) / static_cast<double>(all.size());
    report_.progress("messages", 1 - share_of_choice * (1 - share));
    const P2pResult found = messages.measure(all[i]);
    if (!found.wrong.empty()) {
      throw CollectiveError(ErrorCode::internal, "received data: " + found.wrong);
    }
    keep(costs_of(found));
    report_.row(choice_row(found));
  }
}

}  // namespace
}  // namespace ropewalk::bench

int main(int argc, char** argv) {
  using namespace ropewalk::bench;
  TuneOptions options;
  CLI::App app("What the thresholds of ropewalk should be on this machine.", "ropewalk-bench-tune");
  describe(app, options);
  const Program program{
      &app, &options.common, Need::mpi, [&] { return check(options); },
      [&](const Ranks& ranks, Report& report) { Tuning(options, ranks, report).run(); }};
  return run(program, argc, argv);
}
