// The engine of one node's collectives: the team of its ranks, and the parts that every algorithm
// uses.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "channel/peer_memory.hpp"
#include "collectives/arrivals.hpp"
#include "collectives/copies.hpp"
#include "collectives/duties.hpp"
#include "collectives/operation.hpp"
#include "collectives/range.hpp"
#include "collectives/scratch_memory.hpp"
#include "kernels/kernels.hpp"
#include "node/team.hpp"
#include "ropewalk/collectives.hpp"
#include "tuning/limits.hpp"

namespace ropewalk::collectives {

using tuning::limits_for;

// Used by one thread at a time, as its team.
class Engine {
 public:
  // Collective over `comm`. Returns null on every rank where its ranks cannot be a team; `reason`
  // then says why. `attach_reason`: why they do not attach private memory, if they do not.
  static std::unique_ptr<Engine> create(mpi::Comm comm, std::string& reason,
                                        std::string& attach_reason);
  Engine(std::unique_ptr<node::Team> team, Limits limits);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }
  const Limits& limits() const noexcept { return limits_; }
  void share_cores();  // see Team
  kernels::Stores stores(std::size_t bytes) const noexcept {
    return bytes >= limits_.streaming_bytes ? kernels::Stores::streaming
                                            : kernels::Stores::temporal;
  }

  // ---- the parts

  node::Team& team() noexcept { return *team_; }
  Arrivals& arrivals() noexcept { return arrivals_; }
  Duties& duties() noexcept { return duties_; }
  channel::PeerMemory& memory() noexcept { return memory_; }
  ScratchMemory& scratch() noexcept { return scratch_; }
  Copies& copies() noexcept { return copies_; }

  // ---- bulk calls: what takes several parts

  // Arrives with what this rank shows of its buffers, waits for all ranks, and checks their
  // headers. Returns what each rank has shown.
  const std::vector<Shown>& meet(node::Slot& own, const Shown& shown);
  // Does the second half of meet(), for a rank that has arrived.
  const std::vector<Shown>& collect(const node::Slot& own);
  // Returns where `bytes` of another rank's buffer are seen here. It is for calls that all ranks
  // end with leave(): there a failure becomes an error on every rank.
  std::byte* resolve(int peer, Reference reference, std::size_t bytes) {
    std::byte* here = memory_.resolve(peer, reference, bytes);
    if (here == nullptr) [[unlikely]] {
      give_up();
    }
    return here;
  }
  // The end of a bulk call: nobody touches another's memory any more. Throws on every rank where
  // one could not do its part.
  void leave(bool complete = true);
  // The same for calls that only read what was shown: nobody waits where all are copies.
  void leave(const std::vector<Shown>& shown, bool complete);
  // Gives back what a call has taken: scratch memory, attachments.
  void give_back() noexcept;
  // For a rank that leaves a call by an exception: finishes the phases that the others wait for, so
  // that they get an error and do not hang. `before`: the team's calls() when the call was begun,
  // so that one that was not even claimed is refused.
  void rescue(std::uint64_t before) noexcept;

  // These describe the last call.
  Path path = Path::none;
  // There is one pointer for each rank, so that the arguments of kernels need no allocation.
  std::vector<const void*> inputs;
  std::vector<void*> outputs;

 private:
  [[noreturn]] void give_up();

  // Outlives the team: others may look at what it attaches until that has ended.
  channel::PeerMemory memory_;
  std::unique_ptr<node::Team> team_;
  Limits limits_;
  int rank_;
  int size_;
  Arrivals arrivals_;
  Duties duties_;
  ScratchMemory scratch_;
  Copies copies_;
  std::vector<Shown> shown_;  // by each rank, in the call under way
};

// Frees what a call has taken at its end, whichever way it ends.
class Scratch {
 public:
  explicit Scratch(Engine& engine) : engine_(engine) {}
  ~Scratch() { engine_.give_back(); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

 private:
  Engine& engine_;
};

}  // namespace ropewalk::collectives
