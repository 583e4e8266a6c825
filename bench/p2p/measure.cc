// Rounds over the columns of a case; see measure.hpp.
#include "p2p/measure.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "collectives/shape.hpp"
#include "common/machine.hpp"
#include "common/parse.hpp"
#include "common/statistics.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::bench {
namespace {

constexpr double sample_us = 5000;        // a sample lasts this long, so that its ends vanish
constexpr double quick_sample_us = 2000;  // the same for --quick
// What is assumed when the time is announced: the rate at which a pair moves bytes, that at which
// they are written and checked, and the fixed cost of a message.
constexpr double usual_mb_per_s = 8000;
constexpr double usual_checked_mb_per_s = 4000;
constexpr double usual_message_us = 1;
constexpr double least_us = 0.001;      // less the reading of the clock, a time may be nothing
constexpr int most_apart = 200;         // iterations a sample: each costs two meetings more
constexpr std::size_t line_bytes = 64;  // up to here a message may travel in its flag's line
constexpr std::size_t checked_always = 1 << 20;  // longer ones: in the first and last round

void check_ranks(int ranks) {
  if (ranks % 2 == 0) return;
  throw CollectiveError(
      ErrorCode::argument,
      fmt::format("ranks: {}, expected an even number, since ranks 2k and 2k + 1 are "
                  "a pair; start for example ropewalk bench p2p -n {}",
                  ranks, ranks + 1));
}

// The limit needs buffers in the arenas, whatever is measured.
void check_memory(const P2pOptions& options, const Ranks& ranks) {
  const std::size_t kinds = std::ranges::count(options.memory_list, "private") > 0 ? 2 : 1;
  const std::size_t wanted =
      2 * kinds * buffer_bytes(options) * static_cast<std::size_t>(ranks.node_size());
  const std::size_t available = available_memory();
  if (available == 0 || wanted <= available / 10 * 9) return;
  throw Error(ErrorCode::memory,
              fmt::format("--sizes: the buffers of {} ranks on this node take {}, and {} are free; "
                          "give smaller sizes or fewer ranks",
                          ranks.node_size(), size_text(wanted), size_text(available)));
}

}  // namespace

struct P2pMeasurement::Column {
  enum class What { plain, choice, forced, flags, copies };
  What what;
  std::function<P2pSample(const P2pRun&)> time;
  const Channel* channel = nullptr;  // of choice and forced
  Mechanism mechanism = Mechanism::none;
  int iterations = 1;
  std::vector<double> us = {};

  bool is_checked() const { return what != What::flags && what != What::copies; }
};

P2pMeasurement::P2pMeasurement(const P2pOptions& options, const Ranks& ranks)
    : options_(options),
      ranks_(ranks),
      rounds_(options.common.rounds_or(20, 5)),
      choice_(ranks.communicator(), {.threads = options.threads}) {
  check_ranks(ranks.size());
  for (const Mechanism each : options.mechanism_list) {
    const int threads = each == Mechanism::threaded ? options.threads : 1;
    forced_.try_emplace(each, ranks.communicator(),
                        ChannelOptions{.force = each, .threads = threads});
  }
  const std::size_t bytes = buffer_bytes(options);
  ranks.collectively([&] { check_memory(options, ranks); });
  limit_.emplace(ranks, bytes);
  limited_ = ranks.all(limit_->is_there());
  ranks.collectively([&] { make_private(bytes); });
  backings_["arena"] = backing_of("arena", limit_->send(), bytes);
  std::vector<Expected> parts;
  for (const P2pCase& one : cases(options)) parts.push_back(expected(one));
  budget_.emplace(options.common, ranks, parts);
}

P2pMeasurement::~P2pMeasurement() = default;

void P2pMeasurement::make_private(std::size_t bytes) {
  if (std::ranges::count(options_.memory_list, "private") == 0) return;
  private_send_ = page_block("memalign", bytes);
  private_receive_ = page_block("memalign", bytes);
  backings_["private"] = backing("private", private_send_);
}

// How long a sample lasts where there is time enough.
double P2pMeasurement::full_sample_us() const {
  return options_.common.quick ? quick_sample_us : sample_us;
}

// What a case will take, at rates that machines usually have.
Expected P2pMeasurement::expected(const P2pCase& one) const {
  const bool apart = one.buffers == "rewritten";
  const P2pRun run = run_of(one, apart);
  const double both_ways = run.is_one_way() ? 1 : 2;
  const double bytes = both_ways * run.window * static_cast<double>(one.bytes);
  double iteration_us = run.window * usual_message_us + bytes / usual_mb_per_s;
  if (apart) iteration_us += 2 * bytes / usual_checked_mb_per_s;
  const double columns = 2 + static_cast<double>(forced_.size()) + (limited_ ? 2 : 0);
  return sampling(columns, rounds_, full_sample_us(), iteration_us);
}

P2pRun P2pMeasurement::run_of(const P2pCase& one, bool apart) const {
  P2pRun run;
  run.mode = one.mode;
  run.bytes = one.bytes;
  run.window = apart ? apart_window(options_, one.mode, one.bytes)
                     : hot_window(options_, one.mode, one.bytes);
  run.rank = ranks_.rank();
  const bool is_private = one.memory == "private";
  run.send = is_private ? private_send_.data() : limit_->send();
  run.receive = is_private ? private_receive_.data() : limit_->receive();
  run.apart = apart;
  return run;
}

P2pSample P2pMeasurement::time_copies(const P2pRun& run, kernels::Stores stores) {
  P2pRun mapped = run;
  mapped.send = limit_->send();
  mapped.receive = limit_->receive();
  return limit_->time_copies(
      mapped, [&] { plain_.meet(run); }, stores);
}

std::vector<P2pMeasurement::Column> P2pMeasurement::columns(const P2pCase& one) {
  using What = Column::What;
  std::vector<Column> all;
  all.push_back({What::plain, [this](const P2pRun& run) { return time_plain(plain_, run); }});
  all.push_back({What::choice,
                 [this](const P2pRun& run) { return time_channel(choice_, plain_, run); },
                 &choice_});
  for (auto& entry : forced_) {
    Channel& channel = entry.second;
    Column column{
        What::forced,
        [this, &channel](const P2pRun& run) { return time_channel(channel, plain_, run); },
        &channel, entry.first};
    if (can_carry(column, one)) all.push_back(std::move(column));
  }
  if (limited_) add_limits(one, all);
  return all;
}

void P2pMeasurement::add_limits(const P2pCase& one, std::vector<Column>& all) {
  using What = Column::What;
  if (one.mode == Mode::latency) {
    all.push_back({What::flags, [this](const P2pRun& run) { return limit_->time_flags(run); }});
  }
  if (one.bytes <= line_bytes) return;
  for (const auto stores : {kernels::Stores::temporal, kernels::Stores::streaming}) {
    all.push_back(
        {What::copies, [this, stores](const P2pRun& run) { return time_copies(run, stores); }});
  }
}

// The mechanism of the messages to rank 1, which receives in every mode.
Mechanism P2pMeasurement::last_of(const Channel& channel) const {
  const auto mine = static_cast<double>(channel.last_mechanism());
  return static_cast<Mechanism>(ranks_.gather(std::vector<double>{mine})[1][0]);
}

// Whether a forced mechanism carries such messages, or leaves them to another, as short ones that
// travel beside their flags.
bool P2pMeasurement::can_carry(Column& column, const P2pCase& one) {
  column.time(run_of(one, false));
  return last_of(*column.channel) == column.mechanism;
}

// One iteration with contents that only it can have brought; what was wrong on this rank.
std::string P2pMeasurement::checked(Column& column, const P2pCase& one) {
  P2pRun run = run_of(one, true);
  run.serial = ++serial_;
  return column.time(run).wrong;
}

// Iterations a sample, the same on all ranks. By the time on the wall, since what is not timed of
// apart buffers takes time as well.
void P2pMeasurement::calibrate(Column& column, const P2pRun& run, double wanted) {
  P2pRun trial = run;
  column.time(trial);  // connections, registrations and pages of the MPI itself
  if (options_.iterations > 0) {
    column.iterations = options_.iterations;
    return;
  }
  for (;;) {
    trial.serial = serial_ + 1;
    serial_ += static_cast<std::uint64_t>(trial.iterations);
    ranks_.barrier();
    const double begin = now_us();
    column.time(trial);
    const double time = ranks_.max(now_us() - begin);
    column.iterations = iterations_for(time / trial.iterations, wanted);
    if (run.apart) column.iterations = std::min(column.iterations, most_apart);
    if (time >= wanted / 4 || trial.iterations >= column.iterations) return;
    trial.iterations = std::min(column.iterations, trial.iterations * 8);
  }
}

// Microseconds of a message, of the slowest rank. One iteration before, untimed: the other columns
// have left the caches as they like.
double P2pMeasurement::sample(Column& column, P2pRun run, std::string& wrong) {
  P2pRun warm = run;
  warm.iterations = 1;
  warm.serial = ++serial_;
  column.time(warm);
  run.iterations = column.iterations;
  run.serial = serial_ + 1;
  serial_ += static_cast<std::uint64_t>(run.iterations);
  ranks_.barrier();
  const P2pSample sample = column.time(run);
  if (wrong.empty()) wrong = sample.wrong;
  return std::max(ranks_.max(sample.us) / run.iterations / run.messages(), least_us);
}

// What was wrong first on this rank.
std::string P2pMeasurement::all_rounds(std::vector<Column>& all, const P2pCase& one) {
  const P2pRun run = run_of(one, one.buffers == "rewritten");
  std::string wrong;
  int rounds = rounds_;
  const double begun = now_us();
  for (int number = 0; number < rounds; ++number) {
    if (number == 1) rounds = budget_->rounds(rounds_, now_us() - begun);
    const bool checks = one.bytes <= checked_always || number == 0 || number + 1 == rounds;
    // Each round begins with another column, so that none always follows the same one.
    for (std::size_t i = 0; i < all.size(); ++i) {
      Column& column = all[(i + static_cast<std::size_t>(number)) % all.size()];
      column.us.push_back(sample(column, run, wrong));
      if (!checks || !column.is_checked()) continue;
      const std::string found = checked(column, one);
      if (wrong.empty()) wrong = found;
    }
  }
  return wrong;
}

// The faster kind of stores is the limit; a flag's way comes on top of it.
void P2pMeasurement::keep(const std::vector<Column>& all, P2pResult& result) const {
  using What = Column::What;
  double flag_us = 0;
  double copy_us = 0;
  for (const Column& column : all) {
    const double us = median(column.us);
    if (column.what == What::plain) result.plain = {column.us, column.iterations};
    if (column.what == What::choice) result.choice = {column.us, column.iterations};
    if (column.what == What::forced) {
      result.forced[column.mechanism] = {column.us, column.iterations};
    }
    if (column.what == What::flags) flag_us = us;
    if (column.what == What::copies && (copy_us == 0 || us < copy_us)) copy_us = us;
  }
  result.limit_us = flag_us + copy_us;
}

P2pResult P2pMeasurement::measure(const P2pCase& one) {
  budget_->begin();
  const P2pRun run = run_of(one, one.buffers == "rewritten");
  std::vector<Column> all = columns(one);
  const double samples = least_samples(static_cast<double>(all.size()));
  const double wanted = budget_->sample_us(full_sample_us(), samples);
  for (Column& column : all) calibrate(column, run, wanted);
  P2pResult result(one);
  result.window = run.window;
  result.wrong = ranks_.first_text(all_rounds(all, one));
  keep(all, result);
  P2pRun again = run_of(one, false);
  time_channel(choice_, plain_, again);
  result.path = last_of(choice_);
  return result;
}

}  // namespace ropewalk::bench
