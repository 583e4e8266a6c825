// The state of an endpoint set: its lanes and what they share. The set and its plans share its
// ownership; the last of them destroys it.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "mpi/mpi.hpp"
#include "node/team.hpp"
#include "os/fork.hpp"
#include "ropewalk/detail/unwinding.hpp"
#include "ropewalk/endpoint.hpp"
#include "transport/agreement.hpp"
#include "transport/lane.hpp"
#include "transport/lane_communicators.hpp"
#include "transport/lost_ranks.hpp"
#include "transport/node_team.hpp"
#include "transport/tags.hpp"

namespace ropewalk::transport {

// Throws Error where there is no MPI to make endpoints with, or no communicator.
mpi::Comm checked_parent(mpi::Comm parent);

class LaneSet {
 public:
  // Collective: if one rank cannot get its resources, that is an error on all.
  LaneSet(mpi::Comm parent, const EndpointOptions& options);
  // Collective. Receives and drops the messages that cancelled plans of other ranks still send,
  // until no rank has anything pending, and only then frees the communicators.
  ~LaneSet();
  LaneSet(const LaneSet&) = delete;
  LaneSet& operator=(const LaneSet&) = delete;

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }
  int lanes() const noexcept { return static_cast<int>(communicators_.all().size()); }
  bool has_threads() const noexcept { return !threads_.empty(); }
  std::size_t split_bytes() const noexcept { return split_bytes_; }
  std::size_t piece_bytes() const noexcept { return piece_bytes_; }
  const LaneCommunicators& communicators() const noexcept { return communicators_; }

  // Threads outnumber cores: waiting threads should get out of the way at once.
  bool crowded() const noexcept { return crowded_; }

  // False in a child of fork, which has neither the comm threads nor a working MPI.
  bool is_here() const noexcept;
  // Throws where an exchange can no longer be started.
  void require_usable() const;
  // After a failed or cancelled exchange, later messages could meet receives of an earlier one.
  void mark_broken() noexcept { broken_.store(true, std::memory_order_relaxed); }

  LostRanks& lost() noexcept { return lost_; }

  const NodeNumbers& nodes() const noexcept { return nodes_; }
  // Collective at the first call. Returns the ranks of this rank's node as a team that shares
  // memory; null on every rank where those of some node cannot, and `reason` then says why. It
  // lives as long as the set, whose end is collective too.
  node::Team* team(std::string& reason);

  // These are the tags of messages that are not the caller's, over all the lanes.
  TagSpace& tags() noexcept { return communicators_.tags(); }

  void push(int lane, LaneWork& work) noexcept {
    threads_[static_cast<std::size_t>(lane)]->push(work);
  }
  // Progresses the caller's own MPI traffic: a peer may wait for it before it comes to us.
  void progress() const noexcept;

 private:
  void set_up(const Agreement& agreement, std::span<const int> cores,
              const EndpointOptions& options);
  void start_threads(const Agreement& agreement, std::span<const int> cores, bool pin);
  bool part();

  mpi::Comm parent_;
  int rank_;
  int size_;
  std::size_t split_bytes_ = 0;
  std::size_t piece_bytes_ = 0;
  bool crowded_ = false;
  os::ForkCheck fork_;
  std::atomic<bool> broken_{false};
  detail::Unwinding unwinding_;
  LaneCommunicators communicators_;
  LostRanks lost_;
  std::vector<std::unique_ptr<LaneThread>> threads_;
  NodeNumbers nodes_;
  std::unique_ptr<NodeTeam> team_;
  std::string no_team_;  // why there is none
  bool asked_for_team_ = false;
};

}  // namespace ropewalk::transport
