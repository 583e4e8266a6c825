#include "transport/node_team.hpp"

#include "mpi/collectively.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::transport {

NodeNumbers::NodeNumbers(std::vector<int> numbers, int rank) : of(std::move(numbers)) {
  std::vector<int> ranks;  // of each node, so far
  for (const int node : of) {
    const auto index = static_cast<std::size_t>(node);
    if (index >= ranks.size()) ranks.resize(index + 1);
    places.push_back(ranks[index]++);
  }
  count = static_cast<int>(ranks.size());
  own = of[static_cast<std::size_t>(rank)];
}

int NodeNumbers::rank_at(int place) const noexcept {
  for (std::size_t rank = 0; rank < of.size(); ++rank) {
    if (of[rank] == own && places[rank] == place) return static_cast<int>(rank);
  }
  return -1;
}

void NodeTeam::lost(int place) {
  const int rank = nodes_.rank_at(place);
  lost_.lost(rank);
  throw Error(ErrorCode::peer_dead, "rank " + std::to_string(rank) + " (process " +
                                        std::to_string(team_->process_id(place)) +
                                        ") has died: these endpoints cannot be used any more; end "
                                        "the job");
}

std::unique_ptr<NodeTeam> NodeTeam::create(mpi::Comm parent, const NodeNumbers& nodes,
                                           LostRanks& lost, std::string& reason) {
  std::unique_ptr<NodeTeam> out(new NodeTeam(nodes, lost));
  if (!nodes.several()) {
    out->team_ = node::Team::create(parent, reason);
    return out->team_ == nullptr ? nullptr : std::move(out);
  }
  mpi::Comm& comm = out->comm_.comm;
  if (!mpi::try_split(parent, nodes.own, mpi::rank(parent), comm)) {
    reason = "MPI has no communicator left for the ranks of a node";
    return nullptr;
  }
  mpi::collectively(comm, [&] { out->team_ = node::Team::create(comm, reason); });
  if (!mpi::true_on_all(parent, out->team_ != nullptr)) {
    if (out->team_ != nullptr) reason = "the ranks of another node cannot map each other's memory";
    return nullptr;
  }
  out->team_->waits().watch_with(out.get());
  return out;
}

}  // namespace ropewalk::transport
