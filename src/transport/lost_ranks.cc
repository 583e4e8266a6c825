#include "transport/lost_ranks.hpp"

#include <string>

#include "ropewalk/error.hpp"
#include "transport/part.hpp"

namespace ropewalk::transport {

void LostRanks::watch(mpi::Comm parent, mpi::Comm lane) {
  lane_ = lane;
  std::string why_not;  // nobody asks
  liveness_ = node::Liveness::create(parent, why_not);
}

void LostRanks::look() {
  if (liveness_ != nullptr) liveness_->look();
}

void LostRanks::lost(int rank) {
  if (liveness_ != nullptr) liveness_->lost(rank);
}

bool LostRanks::any_dead() noexcept {
  if (liveness_ == nullptr) return false;
  try {
    liveness_->look();
    return false;
  } catch (...) {
    return true;
  }
}

bool LostRanks::any() noexcept {
  if (any_dead()) return true;
  try {
    look_for_notices();
  } catch (...) {  // the exchange meets what MPI has to say, too
  }
  return any_left();
}

void LostRanks::look_for_notices() {
  mpi::Status found;
  if (!mpi::iprobe(mpi::any_source(), notice_tag, lane_, found)) return;
  left_.store(found.source, std::memory_order_release);
}

void LostRanks::throw_found() const {
  if (liveness_ != nullptr) liveness_->require_whole();
  const int rank = left_.load(std::memory_order_acquire);
  if (rank < 0) return;
  throw Error(ErrorCode::mpi, "endpoints: an exception on rank " + std::to_string(rank) +
                                  " has ended its endpoints, expected its messages; see its error, "
                                  "and make new endpoints on all ranks");
}

void LostRanks::explain() {
  if (liveness_ != nullptr) liveness_->explain();
}

}  // namespace ropewalk::transport
