#include "persistent.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "collectives/state.hpp"
#include "local_mpi.hpp"
#include "mpi/collectively.hpp"
#include "windows.hpp"

namespace ropewalk::preload {
namespace {

// From here on the ranks share the work, where all of their memory is mapped. Below, it takes less
// time to copy what is sent than to wait for each other twice; longer, where a rank that sends does
// not wait for those that receive (bench/dropin/persistent.py).
constexpr std::int64_t least_shared_bytes = 512;
constexpr std::int64_t least_rooted_bytes = 4096;

bool is_rooted(Function function) {
  constexpr std::array rooted{Function::bcast_init,   Function::reduce_init,
                              Function::gather_init,  Function::gatherv_init,
                              Function::scatter_init, Function::scatterv_init};
  return std::ranges::find(rooted, function) != rooted.end();
}
// The rest is for copies. The whole copy is in the arena twice, and every block is copied twice, so
// that the data of larger calls are better left to MPI.
constexpr std::size_t most_sent_bytes = std::size_t{4} << 20;
// Each rank combines the blocks of all ranks by itself. From here on MPI, whose ranks share the
// work, takes less time.
constexpr std::size_t most_combined_bytes = std::size_t{1} << 20;

std::size_t bytes_in(std::span<const SentBlock> sent) {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < sent.size(); ++i) {
    const bool again = i > 0 && sent[i].from == sent[i - 1].from;
    bytes += again ? 0 : sent[i].bytes;
  }
  return bytes;
}

bool is_small(const RoundPlan& plan) {
  if (bytes_in(plan.sent) > most_sent_bytes) return false;
  std::size_t combined = 0;
  for (const ReceivedBlock& block : plan.received) combined += block.bytes;
  return !plan.operation || combined <= most_combined_bytes;
}

bool can_share(const RoundPlan& plan) {
  if (plan.operation) return plan.shared && plan.work().is_mapped();
  if (plan.typed) return !plan.overwrites && plan.work().is_mapped();
  const bool packs = (plan.packed != nullptr && plan.packed->packs()) ||
                     (plan.unpacked != nullptr && plan.unpacked->packs());
  return !packs && !plan.overwrites && plan.work().is_mapped();
}

// What all ranks know of the collective. Collective.
struct Agreement {
  bool served;
  bool shares;
};
Agreement agree_on(Function function, const std::optional<RoundPlan>& plan, mpi::Comm comm) {
  std::array<std::int64_t, 4> least{};  // of all ranks
  if (plan) {
    const auto bytes = static_cast<std::int64_t>(plan->work().bytes());
    least = {1, can_share(*plan) ? 1 : 0, is_small(*plan) ? 1 : 0, -bytes};
  }
  mpi::all_reduce(least, mpi::Combine::min, comm);
  const std::int64_t least_bytes = is_rooted(function) ? least_rooted_bytes : least_shared_bytes;
  const bool shares = least[1] != 0 && -least[3] >= least_bytes;
  return {least[0] != 0 && (shares || least[2] != 0), shares};
}

}  // namespace

std::shared_ptr<PersistentCollective> PersistentCollective::agree(Function function,
                                                                  Collectives& team, mpi::Comm comm,
                                                                  std::optional<RoundPlan> plan) {
  const Agreement agreed = agree_on(function, plan, comm);
  if (!agreed.served) return nullptr;
  std::shared_ptr<PersistentCollective> made;
  std::vector<std::uint64_t> offsets;
  try {
    offsets.resize(static_cast<std::size_t>(team.size()));
    made = std::make_shared<PersistentCollective>(function, team, *std::move(plan), agreed.shares);
  } catch (...) {  // there is no memory: no rank serves it
    made = nullptr;
  }
  if (!mpi::true_on_all(comm, made != nullptr)) return nullptr;
  const std::uint64_t own = made->memory().offset();
  mpi::all_gather(&own, offsets.data(), sizeof own, comm);
  // The others look at this rank's area until the ranks agree for the second time.
  if (!mpi::true_on_all(comm, made->connect(offsets))) return nullptr;
  made->memory().share();
  return made;
}

PersistentCollective::PersistentCollective(Function function, Collectives& team, RoundPlan plan,
                                           bool shares)
    : function_(function),
      rank_(team.rank()),
      size_(team.size()),
      sent_bytes_(bytes_in(plan.sent)),
      plan_(std::move(plan)) {
  if (shares) {
    tasks_ = std::make_unique<RoundTasks>(team, plan_.work());
    return;
  }
  find_peers();
  area_ = std::make_unique<RoundArea>(team, plan_.sent, !readers_.empty());
  places_.resize(plan_.received.size());
  inputs_.resize(plan_.received.size());
}

// A rank that this one waits for has left the round before when it begins one, and needs not be
// asked whether it has.
void PersistentCollective::find_peers() {
  const std::vector<bool> is_source = plan_.sources(size_);
  std::vector<bool> reads(static_cast<std::size_t>(size_));
  for (std::size_t i = 0; i < plan_.sent.size(); ++i) {
    const int to = plan_.destinations.empty() ? static_cast<int>(i) : plan_.destinations[i];
    if (plan_.sent[i].bytes != 0 && to >= 0) reads[static_cast<std::size_t>(to)] = true;
  }
  for (int rank = 0; rank < size_; ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    if (rank == rank_) continue;
    if (is_source[at]) sources_.push_back(rank);
    if (reads[at] && !is_source[at]) readers_.push_back(rank);
  }
}

bool PersistentCollective::connect(std::span<const std::uint64_t> offsets) noexcept {
  memory().connect(offsets);
  try {
    if (tasks_ != nullptr) return tasks_->connect(plan_.work());
  } catch (...) {  // no memory
    return false;
  }
  area_->connect();
  for (const int rank : sources_) area_->add_source(rank);
  for (std::size_t i = 0; i < plan_.received.size(); ++i) {
    const ReceivedBlock& block = plan_.received[i];
    const std::int64_t sent = area_->bytes_of(block.from, block.number);
    if (sent != static_cast<std::int64_t>(block.bytes)) return false;
    places_[i] = area_->place_of(block.from, block.number);
  }
  return true;
}

void PersistentCollective::start() noexcept {
  watch_.emplace(function_, sent_bytes_);
  found_dead_ = 0;
  if (tasks_ != nullptr) return tasks_->begin();
  if (failed_ != 0) return;
  ++round_;
  begun_ = gone_ = 0;
  try {
    if (plan_.packed != nullptr) plan_.packed->pack();
    area_->fill(round_, plan_.sent);
  } catch (...) {  // MPI could not pack
    area_->refuse(round_);
  }
}

bool PersistentCollective::do_tasks(bool at_once) noexcept { return tasks_->advance(at_once); }

bool PersistentCollective::rooms_are_ready() noexcept {
  while (begun_ < sources_.size() && area_->has_begun(sources_[begun_], round_)) ++begun_;
  while (gone_ < readers_.size() && area_->has_left(readers_[gone_], round_)) ++gone_;
  return begun_ == sources_.size() && gone_ == readers_.size();
}

bool PersistentCollective::complete(int& code) noexcept {
  code = failed_;
  if (code != 0) return true;
  if (!is_ready(true)) {
    code = code_of_death();
    return code != 0;
  }
  if (tasks_ == nullptr) {
    code = judge();
    area_->leave(round_);
  }
  // As the blocking calls do.
  if (windows_made || function_ == Function::barrier_init) progress();
  if (watch_) watch_->served(tasks_ != nullptr ? Path::mapped : Path::staged);
  watch_.reset();
  return true;
}

int PersistentCollective::judge() noexcept {
  const auto refusal = [](int rank) {
    std::array<char, 96> text{};
    std::snprintf(text.data(), text.size(), "rank %d could not pack what it sends", rank);
    return error_code(text.data());
  };
  if (area_->has_refused(rank_, round_)) return refusal(rank_);
  for (const int rank : sources_) {
    if (area_->has_refused(rank, round_)) return refusal(rank);
  }
  try {
    const std::vector<ReceivedBlock>& blocks = plan_.received;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      inputs_[i] = area_->room_of(blocks[i].from, round_) + places_[i];
    }
    plan_.receive(inputs_);
    return 0;
  } catch (const std::exception& error) {
    return error_code(error.what());
  }
}

// A rank that has died after its last start has done its part of the round, but for a task that it
// may have claimed. Ranks that live end their tasks before the next look.
bool PersistentCollective::has_done_its_part(int rank) noexcept {
  if (tasks_ == nullptr) {
    const bool awaited = std::ranges::find(sources_, rank) != sources_.end();
    if (awaited) return area_->has_begun(rank, round_);
    const bool reads = std::ranges::find(readers_, rank) != readers_.end();
    return !reads || area_->has_left(rank, round_);
  }
  if (!tasks_->has_begun(rank)) return false;
  return ++found_dead_ <= size_;
}

// The others may read the rooms of the round, which are filled no more. Those that wait for this
// rank fail as well.
int PersistentCollective::fail(int code) noexcept {
  if (tasks_ != nullptr) return code;
  area_->fail();
  return failed_ = code;
}

int PersistentCollective::code_of_death() noexcept {
  if (!look_.is_due()) return 0;
  for (int rank = 0; rank < size_; ++rank) {
    const node::Peer& process = memory().process(rank);
    const bool has_failed = tasks_ == nullptr && area_->has_failed(rank);
    if (rank == rank_ || !(has_failed || node::is_dead(process)) || has_done_its_part(rank)) {
      continue;
    }
    std::array<char, 128> text{};
    std::snprintf(text.data(), text.size(),
                  has_failed
                      ? "rank %d (process %d) has found a dead rank in a persistent collective"
                      : "rank %d (process %d) has died before the end of a persistent "
                        "collective",
                  rank, process.process);
    return fail(error_code(text.data()));
  }
  return 0;
}

}  // namespace ropewalk::preload
