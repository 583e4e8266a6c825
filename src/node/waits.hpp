// Waiting for flags of the other ranks of a team, and waking those that sleep.
//
// A rank that waits progresses MPI on the way, since others may be blocked on a message of its own,
// and notices when a rank has died.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "node/flag.hpp"
#include "node/sleepers.hpp"
#include "os/relax.hpp"

namespace ropewalk::os {
struct WaitPolicy;
}

namespace ropewalk::node {

struct Peer;

// A waiting rank looks at this now and then, beside the flags it waits for. It may throw.
class Watcher {
 public:
  virtual ~Watcher() = default;
  virtual void look() = 0;
  // A rank of the team has died: throws what says more about it than the team can, or returns.
  virtual void lost(int rank) = 0;
};

// It is used by the thread that uses the team. Only until() may run in several threads at a time,
// where MPI allows them to call it.
class Waits {
 public:
  // All ranks share the sleepers. The death of one of `peers` (by rank) ends a wait. Both outlive
  // this. The ranks have so many cores together.
  Waits(Sleepers& sleepers, std::span<const std::shared_ptr<Peer>> peers, int cores) noexcept;

  // Returns when `ready()` is true; it may do work of its own and throw. Adapts: spins, yields,
  // sleeps, and on the way progresses MPI and notices dead ranks: Error(peer_dead).
  template <class Ready>
  void until(Ready ready) {
    if (waited_in_model(ready)) return;
    for (unsigned spin = 0; spin < spins_; ++spin) {
      if (ready()) return;
      os::relax();
    }
    // A copy, so that what `ready` holds may stay in registers above.
    const Ready copy = ready;
    wait_slowly([](const void* test) { return (*static_cast<const Ready*>(test))(); }, &copy);
  }
  // From now on the calling thread waits as one that works beside the program's own: where there is
  // no core for both, it leaves the core to the other.
  static void this_thread_is_beside() noexcept;
  // To be called after a flag was raised. A sleeper that this load misses wakes by itself a
  // millisecond later: no fence on the fast path.
  void wake_sleepers() noexcept {
    if (sleepers_.count.load(std::memory_order_relaxed) != 0) [[unlikely]] {
      wake_all();
    }
  }
  // Looks at MPI and at the life of the others, for loops that test instead of waiting.
  void look_around();
  void check_alive();  // Error(peer_dead)

  // Sets whether waiting progresses MPI. A thread that may not call MPI does not; somebody else
  // must then.
  void progress_mpi(bool wanted) noexcept { progresses_mpi_ = wanted; }
  // From now on waiting ranks look at what the watcher watches. It is for teams that are a part of
  // something larger.
  void watch_with(Watcher* watcher) noexcept { watcher_ = watcher; }

  bool crowded() const noexcept { return crowded_; }  // more ranks than cores
  // From now on waits behave as if there were more ranks than cores, because others that are no
  // part of the team share them. To be called on all ranks or on none.
  void share_cores() noexcept;
  // The team is of no use any more: as if a rank had died.
  void give_up() noexcept { broken_.store(true, std::memory_order_relaxed); }
  // A rank was found dead, or the team was given up.
  bool broken() const noexcept { return broken_.load(std::memory_order_relaxed); }

 private:
  const os::WaitPolicy& policy() const noexcept;
  void wait_slowly(bool (*ready)(const void*), const void* test);
  bool stays_awake() const noexcept;
  void sleep(bool (*ready)(const void*), const void* test, std::int64_t longest_ns);
  void wake_all() noexcept;

  Sleepers& sleepers_;
  std::span<const std::shared_ptr<Peer>> peers_;
  Watcher* watcher_ = nullptr;
  unsigned spins_ = 0;
  bool crowded_;
  bool crowded_beside_;  // with a second thread in each rank
  bool progresses_mpi_ = true;
  std::atomic<bool> broken_{false};
};

}  // namespace ropewalk::node
