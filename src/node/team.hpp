// The ranks of one communicator that share a node: flags, slots, and each other's memory.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "mpi/mpi.hpp"
#include "node/control.hpp"
#include "node/domains.hpp"
#include "os/relax.hpp"

namespace ropewalk::node {

struct RankFacts;
struct Peer;  // one rank's process: its arena as we map it, its pidfd

// What a waiting rank looks at now and then beside the flags it waits for. May throw.
class Watcher {
 public:
  virtual ~Watcher() = default;
  virtual void look() = 0;
  // A rank of the team has died: throws what says more about it than the team can, or returns.
  virtual void lost(int rank) = 0;
};

// Made collectively; used by one thread at a time. Different teams may be used by different
// threads.
class Team {
 public:
  // Collective over `comm`. Returns null on every rank when the ranks are not all on one node or
  // cannot map each other's memory; `reason` then says why. Error(argument) on every rank where
  // ROPEWALK_DOMAINS of one is malformed.
  static std::unique_ptr<Team> create(mpi::Comm comm, std::string& reason);
  // Every rank must end its team, but none waits for the others and none calls MPI: what a slower
  // rank may still look at is given back at a later creation or end of any team.
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }
  mpi::Comm comm() const noexcept { return comm_; }  // the caller's
  bool cma() const noexcept { return cma_; }  // every rank may read every other's memory by CMA
  int process_id(int rank) const noexcept;
  Peer& peer(int rank) const noexcept { return *peers_[rank]; }
  bool broken() const noexcept { return broken_.load(std::memory_order_relaxed); }
  const Domains& domains() const noexcept { return domains_; }
  int cores() const noexcept { return cores_; }       // that the ranks may run on, together
  bool crowded() const noexcept { return crowded_; }  // more ranks than cores

  // From now on as if there were more ranks than cores: others that are no part of the team share
  // them. On all ranks or on none.
  void share_cores() noexcept;

  // From now on waiting ranks look at what the watcher watches. For teams that are a part of
  // something larger.
  void watch_with(Watcher* watcher) noexcept { watcher_ = watcher; }

  // ---- arrivals: one slot a call

  // The slot of this rank for its next call. Its last readers have left it.
  Slot& claim() {
    ++sequence_;
    // The slot was last used `slots` calls ago. Its readers have left it when they have arrived at
    // the call after that one.
    if (sequence_ >= seen_ + slots) [[unlikely]] {
      wait_for_readers();
    }
    return own_->slot[sequence_ % slots];
  }
  Slot& claimed() noexcept { return own_->slot[sequence_ % slots]; }  // once more
  // Shows the claimed slot; releases everything written before it. `payload` bytes of it were
  // written, and will be, it is assumed, at the next call.
  void arrive(std::size_t payload = 0) noexcept {
    own_->slot[sequence_ % slots].sequence.store(sequence_, std::memory_order_release);
    own_->arrived.store(sequence_, std::memory_order_release);
    wake_sleepers();
    take_next_slot(payload);
  }
  std::uint64_t calls() const noexcept { return sequence_; }  // claimed by this rank
  // At the call of the last claim().
  bool has_arrived() const noexcept {
    return own_->arrived.load(std::memory_order_relaxed) == sequence_;
  }
  // The slot of a rank in the call of the last claim(), once that rank has arrived.
  const Slot& arrival(int rank) {
    const Slot& slot = control_[rank]->slot[sequence_ % slots];
    // Pairs with the release in arrive() of that rank.
    wait_until([&] { return slot.sequence.load(std::memory_order_acquire) >= sequence_; });
    return slot;
  }
  // To be called when every rank's arrival at this call has been seen: their older slots are free.
  void all_arrived() noexcept { seen_ = sequence_; }

  // ---- phases of bulk calls: every rank finishes the same number in every call

  // Everything this rank wrote is visible to a rank that has seen the phase.
  std::uint64_t finish_phase() noexcept {
    ++phase_;
    own_->phase.store(phase_, std::memory_order_release);
    wake_sleepers();
    return phase_;
  }
  // The same for a rank that could not do its part. Those that wait for the phase find it.
  std::uint64_t fail_phase() noexcept {
    own_->failed.store(phase_ + 1, std::memory_order_relaxed);
    return finish_phase();
  }
  // A rank that failed in a phase that was waited for, or in a later one: no failure is lost. -1
  // for none. Relaxed: it was written before the release of the phase.
  int failed_rank(std::uint64_t phase) const noexcept {
    for (int peer = 0; peer < size_; ++peer) {
      if (control_[peer]->failed.load(std::memory_order_relaxed) >= phase) return peer;
    }
    return -1;
  }
  // The same when nobody waits for this rank in this call: nothing is shown. What a later phase
  // shows covers it.
  std::uint64_t skip_phase() noexcept { return ++phase_; }
  std::uint64_t phase() const noexcept { return phase_; }  // finished by this rank
  void wait_for_phase(int rank, std::uint64_t phase) {
    const auto& flag = control_[rank]->phase;
    // Pairs with the release in finish_phase() of that rank.
    wait_until([&] { return flag.load(std::memory_order_acquire) >= phase; });
  }
  void wait_for_all(std::uint64_t phase) {
    for (int peer = 0; peer < size_; ++peer) {
      if (peer != rank_) wait_for_phase(peer, phase);
    }
  }
  void barrier() { wait_for_all(finish_phase()); }

  // ---- memory

  // Of a rank's arena, as mapped here.
  std::byte* base(int rank) const noexcept { return base_[rank]; }
  // This rank's staging area, at least `bytes` long. Shown to the others by the next arrival.
  std::byte* staging(std::size_t bytes);
  // Another rank's, after its arrival at this call.
  std::byte* staging_of(int rank) const noexcept {
    return base_[rank] + control_[rank]->staging.load(std::memory_order_relaxed);
  }

  // Room for a copy of so many bytes that the others read in the call of the last claim(). As the
  // slot, it is kept until they have left the call, and nobody need wait. One a call.
  std::byte* room(std::size_t bytes);
  // Of each of the two halves of the rooms, at first. More than the first cache, so that a sender
  // that is faster than its readers writes several copies ahead; less than the second, where the
  // lines of both halves stay.
  static constexpr std::size_t least_half = slots * (std::size_t{4} << 10);
  // So many pieces of the copy are there, for readers that follow while the rest is written.
  void show_pieces(std::uint64_t number) noexcept {
    own_->pieces.store(sequence_ << piece_bits | number, std::memory_order_release);
    wake_sleepers();
  }
  // Until the rank has shown so many in this call, at which it has arrived.
  void wait_for_pieces(int rank, std::uint64_t number) {
    const auto& flag = control_[rank]->pieces;
    const std::uint64_t wanted = sequence_ << piece_bits | number;
    // Pairs with the release in show_pieces() of that rank.
    wait_until([&] { return flag.load(std::memory_order_acquire) >= wanted; });
  }
  static constexpr int piece_bits = 16;  // so many pieces a copy at most, 2^48 calls

  // ---- waiting, for flags of one's own in the arenas of the team

  // Returns when `ready()` is true; it may do work of its own and throw. Adapts: spins, yields,
  // sleeps, and on the way progresses MPI and notices dead ranks: Error(peer_dead). Several threads
  // may wait at the same time where MPI allows them to call it.
  template <class Ready>
  void wait_until(Ready ready) {
    if (waited_in_model(ready)) return;
    for (unsigned spin = 0; spin < spins_; ++spin) {
      if (ready()) return;
      os::relax();
    }
    wait_slowly([](const void* test) { return (*static_cast<const Ready*>(test))(); }, &ready);
  }
  // To be called after a flag was raised. A sleeper that this load misses wakes by itself a
  // millisecond later: no fence on the fast path.
  void wake_sleepers() noexcept {
    if (control_[0]->sleepers.load(std::memory_order_relaxed) != 0) [[unlikely]] {
      wake_all();
    }
  }
  // A look at MPI and at the life of the others, for loops that test instead of waiting.
  void look_around();
  // Whether waiting progresses MPI. Not by a thread that may not call it; somebody else must then.
  void progress_mpi(bool wanted) noexcept { progresses_mpi_ = wanted; }

 private:
  Team() = default;
  // Fetches lines of the next call's slot, which its last readers have, for writing: all at once,
  // while this call goes on, instead of one after the other when they are written.
  void take_next_slot(std::size_t payload) noexcept {
    if (sequence_ + 1 >= seen_ + slots) return;  // they may still be read
    const auto* slot = reinterpret_cast<const std::byte*>(&own_->slot[(sequence_ + 1) % slots]);
    os::prefetch_for_writing(slot);
    if (payload <= Slot::beside_flag_bytes) return;
    for (std::size_t at = 0; at < payload; at += Slot::line_bytes) {
      os::prefetch_for_writing(slot + Slot::line_bytes + at);
    }
  }
  bool allocate_control(std::string& reason);
  void find_domains(std::span<const RankFacts> facts);
  void wait_for_readers();
  void wait_for_arrivals(std::uint64_t wanted);
  void check_alive();

  void wait_slowly(bool (*ready)(const void*), const void* test);
  bool stays_awake() const noexcept;
  void sleep(bool (*ready)(const void*), const void* test, std::int64_t longest_ns);

  void wake_all() noexcept;

  mpi::Comm comm_;
  Watcher* watcher_ = nullptr;
  int rank_ = 0;
  int size_ = 1;
  unsigned spins_ = 0;
  bool cma_ = false;
  int cores_ = 1;
  bool crowded_ = false;
  bool progresses_mpi_ = true;
  Domains domains_;
  std::atomic<bool> broken_{false};  // a rank has died
  std::uint64_t sequence_ = 0;       // calls of this rank
  std::uint64_t seen_ = 0;           // every rank is known to have arrived at this call
  std::uint64_t phase_ = 0;
  Control* own_ = nullptr;
  std::vector<Control*> control_;
  std::vector<std::byte*> base_;
  std::vector<std::shared_ptr<Peer>> peers_;
  std::byte* staging_ = nullptr;
  std::size_t staging_bytes_ = 0;
  // Rooms lie behind each other in one half, until it is full and the other is free.
  struct Half {
    std::byte* memory = nullptr;
    std::size_t bytes = 0;
    std::uint64_t last_call = 0;  // that has a room in it
  };
  static void enlarge(Half& half, std::size_t bytes);
  std::array<Half, 2> halves_;
  int half_ = 0;          // the one in use
  std::size_t used_ = 0;  // of its bytes
};

}  // namespace ropewalk::node
