// The ranks of one communicator that share a node: who they are, each other's arenas, and the parts
// by which they come together.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "mpi/mpi.hpp"
#include "node/control.hpp"
#include "node/domains.hpp"
#include "node/phases.hpp"
#include "node/rooms.hpp"
#include "node/slots.hpp"
#include "node/staging_area.hpp"
#include "node/waits.hpp"

namespace ropewalk::node {

struct RankFacts;
struct Peer;  // one rank's process: its arena as we map it, its pidfd

// It is made collectively, and used by one thread at a time. Different teams may be used by
// different threads.
class Team {
 public:
  // Collective over `comm`. Returns null on every rank when the ranks are not all on one node or
  // cannot map each other's memory; `reason` then says why. Throws Error(argument) on every rank
  // where ROPEWALK_DOMAINS of one is malformed.
  static std::unique_ptr<Team> create(mpi::Comm comm, std::string& reason);
  // Every rank must end its team, but none waits for the others and none calls MPI: what a slower
  // rank may still look at is given back at a later creation or end of any team.
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int rank() const noexcept { return blocks_.rank; }
  int size() const noexcept { return blocks_.size(); }
  mpi::Comm comm() const noexcept { return comm_; }  // the caller's
  bool cma() const noexcept { return cma_; }     // every rank may read every other's memory by CMA
  int cores() const noexcept { return cores_; }  // that the ranks may run on, together
  const Domains& domains() const noexcept { return domains_; }
  Peer& peer(int rank) const noexcept { return *peers_[rank]; }
  int process_id(int rank) const noexcept;
  // Returns the base of a rank's arena, as it is mapped here.
  std::byte* base(int rank) const noexcept { return bases_[rank]; }

  // ---- the parts

  Waits& waits() noexcept { return waits_; }     // for flags of the others
  Slots& slots() noexcept { return slots_; }     // arrivals, one slot a call
  Phases& phases() noexcept { return phases_; }  // of bulk calls
  StagingArea& staging() noexcept { return staging_; }
  Rooms& rooms() noexcept { return rooms_; }

 private:
  using Peers = std::vector<std::shared_ptr<Peer>>;
  // `own` is this rank's control block, which is the team's from here on.
  Team(mpi::Comm comm, Control* own, std::span<const RankFacts> facts, Peers peers, bool cma);

  // The parts stand in the order in which they are made: parts look at what stands above them.
  mpi::Comm comm_;
  bool cma_;
  int cores_;
  Domains domains_;
  Peers peers_;
  std::vector<std::byte*> bases_;
  std::vector<Control*> controls_;
  ControlBlocks blocks_;
  Waits waits_;
  Slots slots_;
  Phases phases_;
  StagingArea staging_;
  Rooms rooms_;
};

}  // namespace ropewalk::node
