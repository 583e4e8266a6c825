#include "node/team.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>
#include <utility>

#include "mpi/collectively.hpp"
#include "mpi/progress.hpp"
#include "node/peers.hpp"
#include "node/reclamation.hpp"
#include "os/clock.hpp"
#include "os/futex.hpp"
#include "os/waiting.hpp"
#include "ropewalk/error.hpp"
#include "ropewalk/memory.hpp"

namespace ropewalk::node {
namespace {

const os::WaitPolicy& policy(bool crowded) noexcept {
  return crowded ? os::wait_for_ranks_crowded : os::wait_for_ranks;
}

}  // namespace

std::unique_ptr<Team> Team::create(mpi::Comm comm, std::string& reason) {
  reclaim();
  std::unique_ptr<Team> team(new Team);
  team->rank_ = mpi::rank(comm);
  team->size_ = mpi::size(comm);
  team->comm_ = comm;
  if (!mpi::true_on_all(comm, team->allocate_control(reason))) {
    if (reason.empty()) reason = "another rank has no communication memory left";
    return nullptr;
  }
  std::uint64_t probe =
      static_cast<std::uint64_t>(os::steady_ns()) ^ reinterpret_cast<std::uintptr_t>(&probe);
  RankFacts own{};
  // No exception before all have spoken: a rank that failed alone would leave the others waiting.
  std::string malformed;
  try {
    own = own_facts(team->own_, &probe);
    own.domain = own_domain(team->rank_);
  } catch (const Error& error) {
    own.malformed = 1;
    malformed = error.what();
  }
  std::vector<RankFacts> facts(team->size_);
  mpi::all_gather(&own, facts.data(), sizeof own, comm);
  if (std::ranges::any_of(facts, [](const RankFacts& rank) { return rank.malformed != 0; })) {
    throw Error(ErrorCode::argument,
                malformed.empty() ? "ROPEWALK_DOMAINS or ROPEWALK_NODES: malformed on another rank"
                                  : malformed);
  }
  if (!same_node(facts)) {
    reason = "the ranks of the communicator are on several nodes";
    return nullptr;
  }
  team->peers_ = map_peers(comm, facts, reason);
  if (team->peers_.empty()) return nullptr;
  team->cma_ = mpi::true_on_all(comm, can_read(facts));
  for (int rank = 0; rank < team->size_; ++rank) {
    team->base_.push_back(team->peers_[rank]->base);
    team->control_.push_back(reinterpret_cast<Control*>(team->base_[rank] + facts[rank].control));
  }
  team->find_domains(facts);
  team->cores_ = cores_of(facts);
  team->crowded_ = team->size_ > team->cores_;
  team->spins_ = policy(team->crowded_).spins;
  return team;
}

void Team::share_cores() noexcept {
  crowded_ = true;
  spins_ = policy(crowded_).spins;
}

void Team::find_domains(std::span<const RankFacts> facts) {
  std::vector<std::int64_t> numbers;
  for (const RankFacts& rank : facts) numbers.push_back(rank.domain);
  domains_ = group_by(numbers);
}

// No exception: a rank that failed alone would leave the others waiting for it.
bool Team::allocate_control(std::string& reason) {
  try {
    void* memory = Arena::process().allocate(sizeof(Control), flag_stride);
    std::memset(memory, 0, sizeof(Control));
    own_ = new (memory) Control;
    return true;
  } catch (const Error& error) {
    reason = error.what();
    return false;
  }
}

Team::~Team() {
  for (int peer = 0; peer < static_cast<int>(control_.size()); ++peer) {
    // The last touch. Release: pairs with the acquire in reclamation.cc of that rank.
    if (peer != rank_) control_[peer]->left.fetch_add(1, std::memory_order_release);
  }
  const auto others = control_.empty() ? 0U : static_cast<std::uint32_t>(size_ - 1);
  reclaim_later({own_, others, {staging_, halves_[0].memory, halves_[1].memory}});
}

int Team::process_id(int rank) const noexcept { return peers_[rank]->process; }

// A reader of call k's slot has left it when it has arrived at call k + 1. Half of the slots are
// waited for, not one: a sender that is faster than its readers then looks at their lines every few
// calls, instead of taking them away at each. Where ranks share cores it waits for all, since every
// wait costs a time slice. Nobody needs this rank's arrival at the call to get so far.
void Team::wait_for_readers() { wait_for_arrivals(sequence_ - (crowded_ ? 1 : slots / 2)); }

void Team::wait_for_arrivals(std::uint64_t wanted) {
  std::uint64_t oldest = sequence_;
  for (int rank = 0; rank < size_; ++rank) {
    if (rank == rank_) continue;
    std::uint64_t arrived = 0;
    wait_until([&] {
      // Pairs with the release in arrive() of that rank: it has read what it had to read before.
      arrived = control_[rank]->arrived.load(std::memory_order_acquire);
      return arrived >= wanted;
    });
    oldest = std::min(oldest, arrived);
  }
  seen_ = oldest;
}

std::byte* Team::staging(std::size_t bytes) {
  if (bytes > staging_bytes_) {
    // The others are done with the old area: they have left the last call that used it.
    if (staging_ != nullptr) Arena::process().deallocate(staging_);
    staging_ = static_cast<std::byte*>(Arena::process().allocate(bytes, 4096));
    staging_bytes_ = bytes;
    own_->staging.store(Arena::process().offset(staging_), std::memory_order_relaxed);
  }
  return staging_;
}

// Two halves, so that nobody waits for others to arrive at the call it is about to arrive at
// itself: the last call that used the other half is the one before the last at the latest.
std::byte* Team::room(std::size_t bytes) {
  // Of no bytes it has an address as well, and one of its own.
  const std::size_t stride =
      (std::max<std::size_t>(bytes, 1) + flag_stride - 1) / flag_stride * flag_stride;
  if (halves_[half_].last_call < seen_) used_ = 0;  // all have left it: its lines are at hand
  if (used_ > 0 && used_ + stride > halves_[half_].bytes) {
    half_ ^= 1;
    used_ = 0;
    const std::uint64_t last = halves_[half_].last_call;
    if (last != 0 && last >= seen_) wait_for_arrivals(last + 1);
  }
  Half& half = halves_[half_];
  if (used_ == 0 && stride > half.bytes) enlarge(half, stride);
  half.last_call = sequence_;
  return half.memory + std::exchange(used_, used_ + stride);
}

// Nobody reads the half any more.
void Team::enlarge(Half& half, std::size_t bytes) {
  if (half.memory != nullptr) Arena::process().deallocate(half.memory);
  half = {nullptr, 0, half.last_call};
  bytes = std::max(least_half, std::bit_ceil(bytes));
  half.memory = static_cast<std::byte*>(Arena::process().allocate(bytes, flag_stride));
  half.bytes = bytes;
}

void Team::check_alive() {
  for (int rank = 0; rank < size_; ++rank) {
    if (!is_dead(*peers_[rank])) continue;
    broken_.store(true, std::memory_order_relaxed);
    if (watcher_ != nullptr) watcher_->lost(rank);
    throw Error(ErrorCode::peer_dead,
                "rank " + std::to_string(rank) + " (process " + std::to_string(process_id(rank)) +
                    ") has died: this communicator cannot be used any more; end the job");
  }
}

void Team::wait_slowly(bool (*ready)(const void*), const void* test) {
  os::Waiting wait = os::Waiting::after_spins(policy(crowded_));
  while (!ready(test)) {
    // A peer may be blocked on a message of ours, or on one that this process must progress.
    wait.poll([&] {
      if (progresses_mpi_) mpi::progress();
    });
    if (stays_awake()) wait.stay_awake();
    if (watcher_ != nullptr && wait.look_due()) watcher_->look();
    if (wait.check_due()) check_alive();
    wait.pause([&](std::int64_t longest_ns) { sleep(ready, test, longest_ns); });
  }
}

// Where ranks share cores, those that work need the core more than a window does.
bool Team::stays_awake() const noexcept {
  return progresses_mpi_ && !crowded_ && mpi::one_sided_expected();
}

void Team::look_around() {
  if (progresses_mpi_) mpi::progress();
  if (watcher_ != nullptr) watcher_->look();
  check_alive();
}

void Team::sleep(bool (*ready)(const void*), const void* test, std::int64_t longest_ns) {
  Control& shared = *control_[0];
  const std::uint32_t before = shared.wake.load(std::memory_order_acquire);
  shared.sleepers.fetch_add(1, std::memory_order_seq_cst);
  if (!ready(test)) os::futex_wait(shared.wake, before, longest_ns);
  shared.sleepers.fetch_sub(1, std::memory_order_relaxed);
}

void Team::wake_all() noexcept {
  Control& shared = *control_[0];
  shared.wake.fetch_add(1, std::memory_order_release);
  os::futex_wake(shared.wake);
}

}  // namespace ropewalk::node
