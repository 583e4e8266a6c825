// Rounds over the columns of a case; see measure.hpp.
#include "collectives/measure.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "collectives/data.hpp"
#include "common/machine.hpp"
#include "common/parse.hpp"
#include "common/statistics.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::bench {
namespace {

constexpr double sample_us = 5000;        // a sample lasts this long, so that its ends vanish
constexpr double quick_sample_us = 2000;  // the same for --quick
// Over nodes a sample has to be long beside a time slice of ranks that share cores, and beside what
// a link may catch up on after a pause (1 ms of its rate in a `ropewalk cluster`); that is spent
// before the clock starts.
constexpr double network_sample_us = 20000;
constexpr int lead_in_share = 5;
// Ranks that share cores fall into step and out of it, for longer than a sample. So the columns
// take turns within a sample, of this length or of one call. An untimed barrier stands between
// them, because what a root has sent ahead would otherwise be on the network while the next column
// is timed.
constexpr double turn_us = 1000;
// What is assumed when the time is announced: rates of memory and of a network that nobody has
// named, and the fixed cost of a call.
constexpr double usual_mb_per_s = 8000;
constexpr double usual_network_mb_per_s = 1000;
constexpr double usual_call_us = 20;
constexpr double least_us = 0.001;  // a difference of two loops may come out below nothing
// From here on a call on rewritten buffers is long beside a barrier, and is timed alone. Below,
// what is written goes through slots, and the loop of rewriting alone is subtracted: that would
// charge larger calls with what the writer waits for lines that its peers have read.
constexpr std::size_t least_apart_bytes = 4096;
constexpr int most_apart = 200;                  // calls a sample: each costs two barriers more
constexpr std::size_t checked_always = 1 << 20;  // larger results: in the first and last round

std::size_t largest_buffer(const CollectivesBenchOptions& options, int ranks) {
  std::size_t largest = 4096;
  for (const Op op : options.op_list) {
    for (const std::size_t bytes : sizes_of(options, op, ranks)) {
      const CallShape root{op, bytes, ranks, 0};
      const std::size_t count = std::max(root.send_count(), root.receive_count());
      largest = std::max({largest, bytes, count * sizeof(float)});
    }
  }
  return largest;
}

// The limit needs buffers in the arenas, whatever is measured.
std::vector<std::string> memory_kinds(const CollectivesBenchOptions& options) {
  std::vector<std::string> kinds = {"arena"};
  for (const std::string& kind : options.memory_list) {
    if (kind != kinds.front()) kinds.push_back(kind);
  }
  return kinds;
}

// Bytes of the send and receive buffers of each kind, of all ranks of this node.
std::size_t wanted_memory(const CollectivesBenchOptions& options, const Ranks& ranks) {
  return 2 * memory_kinds(options).size() * largest_buffer(options, ranks.size()) *
         static_cast<std::size_t>(ranks.node_size());
}

void check_memory(std::size_t wanted, int node_ranks) {
  const std::size_t available = available_memory();
  if (available == 0 || wanted <= available / 10 * 9) return;
  throw Error(ErrorCode::memory,
              fmt::format("--sizes: the buffers of {} ranks on this node take {}, and {} are "
                          "free; give smaller sizes or fewer ranks",
                          node_ranks, size_text(wanted), size_text(available)));
}

}  // namespace

bool fits_memory(const CollectivesBenchOptions& options, const Ranks& ranks) {
  const std::size_t available = available_memory();
  return ranks.all(available == 0 || wanted_memory(options, ranks) <= available / 10 * 9);
}

struct CollectivesMeasurement::Memory {
  Buffer<float> arena_send;
  Buffer<float> arena_receive;
  PageBlock private_send;
  PageBlock private_receive;
  float* send = nullptr;
  float* receive = nullptr;
};

struct CollectivesMeasurement::Column {
  enum class What { plain, ropewalk, temporal, streaming };
  What what;
  std::function<double(const Run&)> time;
  int iterations = 1;
  std::vector<double> us;
  double call_us = 0;  // as calibrated; the same on all ranks

  bool limit() const { return what == What::temporal || what == What::streaming; }
};

CollectivesMeasurement::CollectivesMeasurement(const CollectivesBenchOptions& options,
                                               const Ranks& ranks)
    : options_(options),
      ranks_(ranks),
      rounds_(options.common.rounds_or(20, 5)),
      plain_(ranks),
      node_(ranks.communicator()) {
  const std::size_t bytes = largest_buffer(options, ranks.size());
  ranks.collectively([&] {
    check_memory(wanted_memory(options, ranks), ranks.node_size());
    for (const std::string& kind : memory_kinds(options)) make_memory(kind, bytes / sizeof(float));
  });
  const Memory& arena = *memory_.at("arena");
  everybody_ = everybody(ranks, node_, arena.send, arena.receive);
  ranks_on_ = ranks_on_nodes(node_);
  if (options.model) model_ = measure_model();
  std::vector<Expected> parts;
  for (const CollectiveCase& one : cases(options, ranks.size())) parts.push_back(expected(one));
  budget_.emplace(options.common, ranks, parts);
}

CollectivesMeasurement::~CollectivesMeasurement() = default;

void CollectivesMeasurement::make_memory(const std::string& kind, std::size_t floats) {
  auto memory = std::make_unique<Memory>();
  const auto take = [&](bool in_arena, Buffer<float>& arena, PageBlock& block) {
    if (in_arena) {
      arena = Buffer<float>(floats);
      return arena.data();
    }
    block = page_block("memalign", floats * sizeof(float));
    return reinterpret_cast<float*>(block.data());
  };
  memory->send = take(kind == "arena", memory->arena_send, memory->private_send);
  memory->receive = take(kind != "private", memory->arena_receive, memory->private_receive);
  backings_[kind] = backing_of(kind, memory->send, floats * sizeof(float));
  memory_[kind] = std::move(memory);
}

// Says how long a sample lasts where there is time enough.
double CollectivesMeasurement::full_sample_us() const {
  if (over_nodes()) return network_sample_us;
  return options_.common.quick ? quick_sample_us : sample_us;
}

// What a case will take, at rates that machines usually have.
Expected CollectivesMeasurement::expected(const CollectiveCase& one) const {
  const auto [loaded, stored] = traffic(one.op, one.bytes, ranks_.size());
  const double memory_us = static_cast<double>(loaded + stored) / usual_mb_per_s;
  double call_us = usual_call_us + memory_us;
  if (over_nodes()) {
    const double rate = options_.line_rate > 0 ? options_.line_rate : usual_network_mb_per_s;
    call_us += link_bytes(one.op, one.bytes, ranks_on_) / rate;
  }
  const double lead_in = over_nodes() ? 1.0 + 1.0 / lead_in_share : 1.0;
  Expected sum = sampling(limited(one.bytes) ? 4 : 2, rounds_, full_sample_us() * lead_in, call_us);
  const double check_us = 2 * (call_us + memory_us);  // plain and ropewalk, filled and looked at
  sum.all_us += (one.bytes <= checked_always ? rounds_ : 2) * check_us;
  sum.least_us += 2 * check_us;
  return sum;
}

bool CollectivesMeasurement::limited(std::size_t bytes) const {
  return bytes >= least_limit_bytes && !everybody_.send.empty();
}

std::vector<CollectivesMeasurement::Column> CollectivesMeasurement::columns(std::size_t bytes) {
  using What = Column::What;
  std::vector<Column> all;
  all.push_back({What::plain, [this](const Run& one) { return time_plain(plain_, one); }, 1, {}});
  all.push_back(
      {What::ropewalk, [this](const Run& one) { return time_ropewalk(node_, one); }, 1, {}});
  if (!limited(bytes)) return all;
  for (const What what : {What::temporal, What::streaming}) {
    const auto stores =
        what == What::temporal ? kernels::Stores::temporal : kernels::Stores::streaming;
    all.push_back({what,
                   [this, stores](const Run& one) {
                     Run mapped = one;
                     mapped.send = memory_.at("arena")->send;
                     return time_limit(everybody_, mapped, stores);
                   },
                   1,
                   {}});
  }
  return all;
}

// Measures the microseconds that a call takes on the slowest rank. One untimed call goes before
// (over nodes, several), since the other columns leave the caches in any state.
double CollectivesMeasurement::sample(Column& column, Run run) {
  run.first = serial_;
  Run warm = run;
  warm.iterations = over_nodes() ? (run.iterations + lead_in_share - 1) / lead_in_share : 1;
  column.time(warm);
  ranks_.barrier();
  double time = ranks_.max(column.time(run));
  if (run.rewritten && run.apart == nullptr) {
    serial_ += static_cast<Serial>(run.iterations);
    ranks_.barrier();
    time -= ranks_.max(time_rewriting(run));
  }
  return std::max(time / run.iterations, least_us);
}

// Over nodes, the same calls, with those of the columns in turns.
void CollectivesMeasurement::sample_in_turns(std::vector<Column>& all, const Run& run, int number) {
  int turns = 1;
  for (const Column& column : all) {
    const double lasts = column.call_us * column.iterations;
    turns = std::max(turns, std::min(column.iterations, static_cast<int>(lasts / turn_us)));
  }
  std::vector<double> times(all.size(), 0.0);
  const int lead_in = (turns + lead_in_share - 1) / lead_in_share;
  for (int turn = -lead_in; turn < turns; ++turn) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::size_t next = (i + static_cast<std::size_t>(number + turn + lead_in)) % all.size();
      Run some = run;
      some.iterations = std::max(1, all[next].iterations / turns);
      ranks_.barrier();
      const double time = all[next].time(some) / some.iterations;
      if (turn >= 0) times[next] += time / turns;
    }
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].us.push_back(std::max(ranks_.max(times[i]), least_us));
  }
}

// One call, or a short loop of rewriting and calls, with results that only it can have made.
void CollectivesMeasurement::verify(Column& column, const Run& run, std::string& wrong) {
  if (column.limit() || run.shape.op == Op::barrier) return;
  Run one = run;
  one.iterations = run.rewritten ? std::min(3, column.iterations) : 1;
  one.first = ++serial_;
  fill(run.shape, run.send, serial_);
  spoil(run.shape, run.receive);
  ranks_.barrier();
  column.time(one);
  const Serial last = one.first + static_cast<Serial>(one.iterations) - 1;
  const std::string found =
      check(run.shape, run.receive, last, run.rewritten ? Filled::flat : Filled::by_place);
  if (wrong.empty()) wrong = found;
  serial_ = last;
  ranks_.barrier();
}

// Calls a sample, the same on all ranks.
void CollectivesMeasurement::calibrate(Column& column, const Run& run, double wanted) {
  Run trial = run;
  trial.iterations = 1;
  column.time(trial);  // connections, registrations and pages of the MPI itself
  if (options_.iterations > 0) {
    column.iterations = options_.iterations;
    return;
  }
  for (;;) {
    ranks_.barrier();
    const double time = ranks_.max(column.time(trial));
    const double each = std::max(time / trial.iterations, least_us);
    column.call_us = each;
    column.iterations = iterations_for(each, wanted);
    if (run.apart != nullptr) {
      column.iterations = std::min(column.iterations, most_apart);
      return;
    }
    if (time >= wanted / 4 || trial.iterations >= column.iterations) return;
    trial.iterations = std::min(column.iterations, trial.iterations * 8);
  }
}

void CollectivesMeasurement::round(std::vector<Column>& all, const Run& run, bool checks,
                                   int number, std::string& wrong) {
  // Each round begins with another column, so that none always follows the same one.
  for (std::size_t i = 0; i < all.size(); ++i) {
    Column& column = all[(i + static_cast<std::size_t>(number)) % all.size()];
    Run one = run;
    one.iterations = column.iterations;
    if (checks) verify(column, one, wrong);
    if (!over_nodes() || run.rewritten) column.us.push_back(sample(column, one));
  }
  if (over_nodes() && !run.rewritten) sample_in_turns(all, run, number);
}

// The path of one more call. A sample cannot tell it, since the barriers between its calls have
// paths of their own.
std::string CollectivesMeasurement::path(Run run) {
  run.iterations = 1;
  run.rewritten = false;
  time_ropewalk(node_, run);
  return name(node_.last_path());
}

Run CollectivesMeasurement::run_of(const CollectiveCase& one) {
  const Memory& used = *memory_.at(one.memory);
  Run run{{one.op, one.bytes, ranks_.size(), ranks_.rank()},
          used.send,
          used.receive,
          1,
          one.buffers == "rewritten",
          0,
          nullptr};
  if (run.rewritten && one.bytes >= least_apart_bytes) run.apart = &node_;
  return run;
}

// Returns the first wrong element that this rank has seen.
std::string CollectivesMeasurement::all_rounds(std::vector<Column>& all, const Run& run) {
  std::string wrong;
  int rounds = rounds_;
  const double begun = now_us();
  for (int number = 0; number < rounds; ++number) {
    if (number == 1) rounds = budget_->rounds(rounds_, now_us() - begun);
    const bool checks = run.shape.bytes <= checked_always || number == 0 || number + 1 == rounds;
    round(all, run, checks, number, wrong);
  }
  return wrong;
}

// The faster kind of stores is the limit; over nodes the network is.
void CollectivesMeasurement::keep(const std::vector<Column>& all, CollectiveResult& result) const {
  for (const Column& column : all) {
    if (column.what == Column::What::plain) {
      result.plain = column.us;
      result.plain_iterations = column.iterations;
    } else if (column.what == Column::What::ropewalk) {
      result.ropewalk = column.us;
      result.iterations = column.iterations;
    } else if (result.limit.empty() ||
               summarize(column.us).median < summarize(result.limit).median) {
      result.limit = column.us;
    }
  }
  if (over_nodes() && options_.line_rate > 0 && result.bytes >= least_limit_bytes) {
    result.limit = {link_bytes(result.op, result.bytes, ranks_on_) / options_.line_rate};
  }
}

CollectiveResult CollectivesMeasurement::measure(const CollectiveCase& one) {
  budget_->begin();
  const Run run = run_of(one);
  fill(run.shape, run.send, serial_);
  std::vector<Column> all = columns(one.bytes);
  const double samples = least_samples(static_cast<double>(all.size()));
  const double wanted = budget_->sample_us(full_sample_us(), samples);
  for (Column& column : all) calibrate(column, run, wanted);
  CollectiveResult result(one);
  result.wrong = ranks_.first_text(all_rounds(all, run));
  keep(all, result);
  result.path = path(run);
  if (model_) result.predicted_us = predicted_us(*model_, one.op, one.bytes, ranks_.size());
  return result;
}

// a' from barriers; b' and c from all ranks working on their shares at once.
Model CollectivesMeasurement::measure_model() {
  if (everybody_.send.empty()) {
    throw Error(ErrorCode::argument,
                fmt::format("--model: it is for ranks that map each other's memory, and these do "
                            "not ({}); leave --model out",
                            ranks_.size() == 1 ? "one rank alone" : node_.reason()));
  }
  const Memory& arena = *memory_.at("arena");
  const double others = ranks_.size() - 1;
  const auto best = [&](Op op, std::size_t bytes) {
    Run run{
        {op, bytes, ranks_.size(), ranks_.rank()}, arena.send, arena.receive, 1, false, 0, nullptr};
    double least = 0;
    for (const auto stores : {kernels::Stores::temporal, kernels::Stores::streaming}) {
      Column column{Column::What::temporal,
                    [&](const Run& one) {
                      return op == Op::barrier ? time_ropewalk(node_, one)
                                               : time_limit(everybody_, one, stores);
                    },
                    1,
                    {}};
      calibrate(column, run, full_sample_us());
      run.iterations = column.iterations;
      for (int i = 0; i < 5; ++i) column.us.push_back(sample(column, run));
      const double time = summarize(column.us).median;
      if (least == 0 || time < least) least = time;
    }
    return least;
  };
  Model model;
  model.flag_us = best(Op::barrier, 0) / others;
  const std::size_t most = arena.arena_send.bytes();
  for (std::size_t bytes = 4096; bytes <= most; bytes *= 16) {
    const double each = others * static_cast<double>(bytes) / ranks_.size();
    model.a_byte.push_back(
        {bytes, best(Op::bcast, bytes) / each, best(Op::reduce_scatter, bytes) / each});
  }
  return model;
}

}  // namespace ropewalk::bench
