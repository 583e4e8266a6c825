#include "node/waits.hpp"

#include <string>

#include "mpi/progress.hpp"
#include "node/peers.hpp"
#include "os/futex.hpp"
#include "os/waiting.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::node {
namespace {

// It is read on the way to a yield only.
constinit thread_local bool is_beside = false;

}  // namespace

Waits::Waits(Sleepers& sleepers, std::span<const std::shared_ptr<Peer>> peers, int cores) noexcept
    : sleepers_(sleepers),
      peers_(peers),
      crowded_(static_cast<int>(peers.size()) > cores),
      crowded_beside_(2 * static_cast<int>(peers.size()) > cores) {
  spins_ = policy().spins;
}

const os::WaitPolicy& Waits::policy() const noexcept {
  if (crowded_) return os::wait_for_ranks_crowded;
  return is_beside && crowded_beside_ ? os::wait_for_ranks_beside : os::wait_for_ranks;
}

void Waits::this_thread_is_beside() noexcept { is_beside = true; }

void Waits::share_cores() noexcept {
  crowded_ = true;
  spins_ = policy().spins;
}

void Waits::check_alive() {
  for (std::size_t rank = 0; rank < peers_.size(); ++rank) {
    if (!is_dead(*peers_[rank])) continue;
    broken_.store(true, std::memory_order_relaxed);
    if (watcher_ != nullptr) watcher_->lost(static_cast<int>(rank));
    throw Error(ErrorCode::peer_dead,
                "rank " + std::to_string(rank) + " (process " +
                    std::to_string(peers_[rank]->process) +
                    ") has died: this communicator cannot be used any more; end the job");
  }
}

void Waits::wait_slowly(bool (*ready)(const void*), const void* test) {
  os::Waiting wait = os::Waiting::after_spins(policy());
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

// A window that MPI serves needs this rank to look. Where ranks share cores as well: a yield leaves
// the core to those that work, while with naps of a millisecond a lock takes as long.
bool Waits::stays_awake() const noexcept { return progresses_mpi_ && mpi::one_sided_expected(); }

void Waits::look_around() {
  if (progresses_mpi_) mpi::progress();
  if (watcher_ != nullptr) watcher_->look();
  check_alive();
}

void Waits::sleep(bool (*ready)(const void*), const void* test, std::int64_t longest_ns) {
  const std::uint32_t before = sleepers_.wake.load(std::memory_order_acquire);
  sleepers_.count.fetch_add(1, std::memory_order_seq_cst);
  if (!ready(test)) os::futex_wait(sleepers_.wake, before, longest_ns);
  sleepers_.count.fetch_sub(1, std::memory_order_relaxed);
}

void Waits::wake_all() noexcept {
  sleepers_.wake.fetch_add(1, std::memory_order_release);
  os::futex_wake(sleepers_.wake);
}

}  // namespace ropewalk::node
