// The duplicated communicators of an endpoint set, one a lane, and the tags that ropewalk's own
// messages have on them.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "mpi/mpi.hpp"
#include "transport/tags.hpp"

namespace ropewalk::transport {

class LaneCommunicators {
 public:
  explicit LaneCommunicators(mpi::Comm parent) noexcept : parent_(parent) {}

  // Duplicates the communicator. Collective.
  void duplicate(int lanes);
  // Both are collective. The first is for an error on all ranks: freeing is collective, so a
  // communicator that only some ranks have is not freed at all.
  void free_what_all_have() noexcept;
  void free_all() noexcept;

  std::span<const mpi::Comm> all() const noexcept { return communicators_; }
  mpi::Comm first() const noexcept { return communicators_[0]; }
  // Whether each lane is a thread of its own for the MPI, too (mpi/thread_split.hpp).
  bool splits_threads() const noexcept { return splits_threads_; }
  // These are the tags of messages that are not the caller's, over all the lanes.
  TagSpace& tags() noexcept { return *tags_; }

 private:
  int split_threads() const;
  void make_tags();

  mpi::Comm parent_;
  std::vector<mpi::Comm> communicators_;
  std::optional<TagSpace> tags_;
  bool splits_threads_ = false;
};

}  // namespace ropewalk::transport
