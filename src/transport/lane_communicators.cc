#include "transport/lane_communicators.hpp"

#include <cstdint>

#include "mpi/attributes.hpp"
#include "mpi/thread_split.hpp"
#include "transport/part.hpp"

namespace ropewalk::transport {

void LaneCommunicators::duplicate(int lanes) {
  const int threads = split_threads();
  splits_threads_ = threads > 1;
  communicators_.reserve(static_cast<std::size_t>(lanes));
  for (int lane = 0; lane < lanes; ++lane) {
    communicators_.push_back(mpi::dup(parent_));
    if (threads > 1) {
      mpi::set_split_number(communicators_.back(), mpi::split_number(lane, threads));
    }
  }
  make_tags();
}

// Takes the least number over all ranks, so that a lane has one number everywhere. It is collective
// where the MPI splits threads: that is the same MPI on all ranks, though their environments may
// differ.
int LaneCommunicators::split_threads() const {
  if (!mpi::may_split_threads()) return 0;
  std::int64_t least = mpi::split_threads();
  mpi::all_reduce(std::span(&least, 1), mpi::Combine::min, parent_);
  return static_cast<int>(least);
}

// Above the tags of callers: all that MPI has, which must be 32767 at least, or else those between
// Message::tag and the notices.
void LaneCommunicators::make_tags() {
  constexpr int many = 1 << 17;
  const int most = mpi::tag_upper_bound(first());
  if (most >= many) {
    tags_.emplace(control_tag + 1, most);
  } else {
    tags_.emplace(max_message_tag + 1, notice_tag);
  }
}

void LaneCommunicators::free_what_all_have() noexcept {
  try {
    auto least = static_cast<std::int64_t>(communicators_.size());
    mpi::all_reduce(std::span(&least, 1), mpi::Combine::min, parent_);
    communicators_.resize(static_cast<std::size_t>(least));
    free_all();
  } catch (...) {  // MPI is failing: nothing else can be done
  }
}

void LaneCommunicators::free_all() noexcept {
  for (mpi::Comm& communicator : communicators_) {
    try {
      if (communicator != mpi::comm_null()) mpi::free(communicator);
    } catch (...) {  // nothing else can be done about it, nor depends on it
    }
  }
  communicators_.clear();
}

}  // namespace ropewalk::transport
