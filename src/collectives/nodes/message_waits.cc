#include "collectives/nodes/message_waits.hpp"

#include <sched.h>

#include <string>

namespace ropewalk::collectives::nodes {
namespace {

// Looks at messages before a waiting rank gives its core away: each is a call of MPI, some 100 ns
// on a fast fabric and a system call on TCP. About what a small message takes, and where ranks
// share cores hardly any.
constexpr int looks_alone = 200;
constexpr int looks_crowded = 2;

constexpr int yields_per_watch = 64;    // yields between two looks for notices
constexpr int yields_per_check = 1024;  // yields between two looks whether this node's ranks live

}  // namespace

MessageWaits::MessageWaits(const Layout& layout, node::Team& team, ErrorNotices& notices,
                           node::Liveness* liveness)
    : layout_(layout),
      team_(team),
      notices_(notices),
      liveness_(liveness),
      spins_(team.crowded() ? looks_crowded : looks_alone) {
  team_.watch_with(this);
}

void MessageWaits::share_cores() noexcept { spins_ = looks_crowded; }

void MessageWaits::look() {
  const std::unique_lock lock(looking_, std::try_to_lock);
  if (!lock.owns_lock()) return;
  notices_.look();
  if (liveness_ != nullptr) liveness_->look();
}

void MessageWaits::lost(int place) {
  const int rank = layout_.at(layout_.node, place);
  if (liveness_ != nullptr) liveness_->lost(rank);
  throw Error(ErrorCode::peer_dead,
              "rank " + std::to_string(rank) + " (process " +
                  std::to_string(team_.process_id(place)) +
                  ") has died: this communicator cannot be used any more; end the job");
}

void MessageWaits::wait_slowly(bool (*ready)(void*), void* test) {
  for (int yields = 1; !ready(test); ++yields) {
    sched_yield();
    if (yields % yields_per_check == 0) {
      team_.look_around();
    } else if (yields % yields_per_watch == 0) {
      look();
    }
  }
}

void MessageWaits::wait_or_leave(mpi::Request& request) {
  try {
    wait(request);
  } catch (...) {
    mpi::leave(request);
    throw;
  }
}

}  // namespace ropewalk::collectives::nodes
