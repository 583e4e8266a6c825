#include "collectives/nodes/message_waits.hpp"

#include <string>

#include "mpi/progress.hpp"

namespace ropewalk::collectives::nodes {

MessageWaits::MessageWaits(const NodeLayout& layout, node::Team& team, ErrorNotices& notices,
                           node::Liveness* liveness)
    : layout_(layout),
      team_(team),
      notices_(notices),
      liveness_(liveness),
      policy_(team.waits().crowded() ? &os::wait_for_nodes_crowded : &os::wait_for_nodes) {
  team_.waits().watch_with(this);
}

void MessageWaits::share_cores() noexcept { policy_ = &os::wait_for_nodes_crowded; }

void MessageWaits::look() {
  const std::unique_lock lock(looking_, std::try_to_lock);
  if (!lock.owns_lock()) return;
  notices_.look();
  if (liveness_ != nullptr) liveness_->look();
  if (!notices_.in_call() || !timeout_.is_over(notices_.calls())) return;
  throw Error(ErrorCode::peer_dead,
              "collective " + std::to_string(notices_.calls()) +
                  " of this communicator has not ended on rank " + std::to_string(layout_.rank) +
                  " within the timeout of " + std::to_string(timeout_.seconds()) +
                  " s: another rank has not come to it, or has not finished; look at what happens "
                  "there, or allow more time. The communicator cannot be used any more");
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
  os::Waiting wait = os::Waiting::after_spins(*policy_);
  while (!ready(test)) {
    // A rank of this node may wait until this one takes its message.
    mpi::look_also();
    if (wait.check_due()) team_.waits().look_around();
    if (wait.look_due()) look();
    wait.pause();
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
