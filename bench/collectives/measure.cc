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
// Ranks that share cores fall into step and out of it, for longer than a sample: the columns take
// turns within it, of this length or of one call. A barrier, untimed, stands between them, or what
// a root has sent ahead would be on the network in the next one's time.
constexpr double turn_us = 1000;
constexpr double case_us = 10e6;    // over nodes large calls have so many rounds that they fit this
constexpr int few_rounds = 5;       // but no fewer than these, unless fewer were asked for
constexpr double least_us = 0.001;  // a difference of two loops may come out below nothing
// From here on a call on rewritten buffers is long beside a barrier, and is timed alone. Below,
// what is written goes through slots, and the loop of rewriting alone is subtracted: that would
// charge larger calls with what the writer waits for lines that its peers have read.
constexpr std::size_t least_apart_bytes = 4096;
constexpr int most_apart = 200;                  // calls a sample: each costs two barriers more
constexpr std::size_t checked_always = 1 << 20;  // larger results: in the first and last round

std::size_t largest_buffer(const CollectivesOptions& options, int ranks) {
  std::size_t largest = 4096;
  for (const Op op : options.op_list) {
    for (const std::size_t bytes : sizes_of(options, op, ranks)) {
      const Shape root{op, bytes, ranks, 0};
      const std::size_t count = std::max(root.send_count(), root.receive_count());
      largest = std::max({largest, bytes, count * sizeof(float)});
    }
  }
  return largest;
}

// Of all ranks of this node, send and receive buffers of each kind. The limit needs buffers in the
// arenas, whatever is measured.
std::size_t wanted_memory(const CollectivesOptions& options, const Ranks& ranks) {
  const std::size_t kinds = std::ranges::count(options.memory_list, "private") > 0 ? 2 : 1;
  return 2 * kinds * largest_buffer(options, ranks.size()) *
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

bool fits_memory(const CollectivesOptions& options, const Ranks& ranks) {
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

CollectivesMeasurement::CollectivesMeasurement(const CollectivesOptions& options,
                                               const Ranks& ranks)
    : options_(options),
      ranks_(ranks),
      rounds_(options.common.rounds_or(20, 5)),
      plain_(ranks),
      node_(ranks.communicator()) {
  const std::size_t bytes = largest_buffer(options, ranks.size());
  std::vector<std::string> kinds = {"arena"};
  if (std::ranges::count(options.memory_list, "private") > 0) kinds.emplace_back("private");
  ranks.jointly([&] {
    check_memory(wanted_memory(options, ranks), ranks.node_size());
    for (const std::string& kind : kinds) make_memory(kind, bytes / sizeof(float));
  });
  const Memory& arena = *memory_.at("arena");
  everybody_ = everybody(ranks, node_, arena.send, arena.receive);
  ranks_on_ = ranks_on_nodes(node_);
  if (options.model) model_ = measure_model();
}

CollectivesMeasurement::~CollectivesMeasurement() = default;

void CollectivesMeasurement::make_memory(const std::string& kind, std::size_t floats) {
  auto memory = std::make_unique<Memory>();
  if (kind == "arena") {
    memory->arena_send = Buffer<float>(floats);
    memory->arena_receive = Buffer<float>(floats);
    memory->send = memory->arena_send.data();
    memory->receive = memory->arena_receive.data();
  } else {
    memory->private_send = page_block("memalign", floats * sizeof(float));
    memory->private_receive = page_block("memalign", floats * sizeof(float));
    memory->send = reinterpret_cast<float*>(memory->private_send.data());
    memory->receive = reinterpret_cast<float*>(memory->private_receive.data());
  }
  backings_[kind] = backing_of(kind, memory->send, floats * sizeof(float));
  memory_[kind] = std::move(memory);
}

std::vector<CollectivesMeasurement::Column> CollectivesMeasurement::columns(bool limits) {
  using What = Column::What;
  std::vector<Column> all;
  all.push_back({What::plain, [this](const Run& one) { return time_plain(plain_, one); }, 1, {}});
  all.push_back(
      {What::ropewalk, [this](const Run& one) { return time_ropewalk(node_, one); }, 1, {}});
  if (!limits || everybody_.send.empty()) return all;
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

// Microseconds of a call of the slowest rank. One call before it, untimed: the other columns have
// left the caches as they like. Over nodes, several.
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
void CollectivesMeasurement::calibrate(Column& column, const Run& run) {
  Run trial = run;
  trial.iterations = 1;
  column.time(trial);  // connections, registrations and pages of the MPI itself
  if (options_.iterations > 0) {
    column.iterations = options_.iterations;
    return;
  }
  const double local_us = options_.common.quick ? quick_sample_us : sample_us;
  const double wanted = over_nodes() ? network_sample_us : local_us;
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

// Of large calls over nodes there are fewer, so that a sweep ends in minutes.
int CollectivesMeasurement::rounds_for(const std::vector<Column>& all, const Shape& shape) const {
  if (!over_nodes() || options_.common.rounds > 0) return rounds_;
  const int checks = shape.bytes <= checked_always ? 1 : 0;
  double round_us = least_us;
  for (const Column& column : all) {
    const int lead_in = (column.iterations + lead_in_share - 1) / lead_in_share;
    round_us += (column.iterations + lead_in + checks) * column.call_us;
  }
  return std::clamp(static_cast<int>(case_us / round_us), std::min(few_rounds, rounds_), rounds_);
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

// Of one more call: barriers between the calls of a sample have paths of their own.
std::string CollectivesMeasurement::path(Run run) {
  run.iterations = 1;
  run.rewritten = false;
  time_ropewalk(node_, run);
  return name(node_.last_path());
}

std::string CollectivesMeasurement::first_wrong(const std::string& mine) const {
  if (ranks_.all(mine.empty())) return "";
  for (const std::string& wrong : ranks_.gather(mine)) {
    if (!wrong.empty()) return wrong;
  }
  return mine;
}

CollectiveResult CollectivesMeasurement::measure(Op op, std::size_t bytes,
                                                 const std::string& memory,
                                                 const std::string& buffers) {
  using What = Column::What;
  const Memory& used = *memory_.at(memory);
  Run run{{op, op == Op::barrier ? 0 : bytes, ranks_.size(), ranks_.rank()},
          used.send,
          used.receive,
          1,
          buffers == "rewritten",
          0,
          nullptr};
  if (run.rewritten && run.shape.bytes >= least_apart_bytes) run.apart = &node_;
  CollectiveResult result;
  result.op = op;
  result.bytes = run.shape.bytes;
  result.memory = memory;
  result.buffers = buffers;
  fill(run.shape, run.send, serial_);
  std::vector<Column> all = columns(result.bytes >= least_limit_bytes);
  for (Column& column : all) calibrate(column, run);
  std::string wrong;
  const int rounds = rounds_for(all, run.shape);
  for (int number = 0; number < rounds; ++number) {
    const bool checks = bytes <= checked_always || number == 0 || number + 1 == rounds;
    round(all, run, checks, number, wrong);
  }
  for (Column& column : all) {
    if (column.what == What::plain) {
      result.plain = column.us;
      result.plain_iterations = column.iterations;
    } else if (column.what == What::ropewalk) {
      result.ropewalk = column.us;
      result.iterations = column.iterations;
    } else if (result.limit.empty() ||
               summarize(column.us).median < summarize(result.limit).median) {
      result.limit = column.us;
    }
  }
  if (over_nodes() && options_.line_rate > 0 && result.bytes >= least_limit_bytes) {
    result.limit = {link_bytes(op, result.bytes, ranks_on_) / options_.line_rate};
  }
  result.path = path(run);
  result.wrong = first_wrong(wrong);
  if (model_) result.predicted_us = predicted_us(*model_, op, result.bytes, ranks_.size());
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
      calibrate(column, run);
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
