// Which ranks of an endpoint set share a node, and these as a team.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "mpi/scoped_comm.hpp"
#include "node/team.hpp"
#include "transport/lost_ranks.hpp"

namespace ropewalk::transport {

// The nodes of the ranks, the same on all but for `own`.
struct NodeNumbers {
  NodeNumbers() = default;
  NodeNumbers(std::vector<int> numbers, int rank);

  bool several() const noexcept { return count > 1; }
  bool shares_own(int rank) const noexcept { return of[static_cast<std::size_t>(rank)] == own; }
  // Returns the rank's number among those of its node.
  int place(int rank) const noexcept { return places[static_cast<std::size_t>(rank)]; }
  int rank_at(int place) const noexcept;  // on the node of this rank

  std::vector<int> of;  // by rank: its node, numbered by their lowest ranks
  std::vector<int> places;
  int count = 1;
  int own = 0;  // the node of this rank
};

// Where there are several nodes, it has a communicator of its own, and watches for its team whether
// ranks of other nodes live: a neighbour here may be waiting for one of them.
class NodeTeam final : private node::Watcher {
 public:
  // Collective over `parent`. Returns null on every rank where those of some node cannot map each
  // other's memory; `reason` then says why. `lost` and `nodes` outlive it.
  static std::unique_ptr<NodeTeam> create(mpi::Comm parent, const NodeNumbers& nodes,
                                          LostRanks& lost, std::string& reason);
  ~NodeTeam() override = default;
  NodeTeam(const NodeTeam&) = delete;
  NodeTeam& operator=(const NodeTeam&) = delete;

  node::Team& team() noexcept { return *team_; }
  // The end of the team, from which on the communicator is the caller's to free; null where there
  // is none.
  static mpi::Comm end(std::unique_ptr<NodeTeam> ended) noexcept { return ended->comm_.release(); }

 private:
  NodeTeam(const NodeNumbers& nodes, LostRanks& lost) : nodes_(nodes), lost_(lost) {}
  void look() override { lost_.look(); }
  void lost(int place) override;

  const NodeNumbers& nodes_;
  LostRanks& lost_;
  mpi::ScopedComm comm_;
  std::unique_ptr<node::Team> team_;
};

}  // namespace ropewalk::transport
