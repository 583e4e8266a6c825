#include "node/machine_share.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <string_view>
#include <vector>

#include "node/peers.hpp"
#include "os/node_identity.hpp"

namespace ropewalk::node {

Crowding crowding(mpi::Comm comm, int size) {
  RankFacts own{};
  const std::string machine = os::kernel_identity();
  std::memcpy(own.node, machine.data(), std::min(machine.size(), sizeof own.node - 1));
  add_cores(own);
  std::vector<RankFacts> facts(static_cast<std::size_t>(size));
  mpi::all_gather(&own, facts.data(), sizeof own, comm);
  std::map<std::string_view, std::vector<RankFacts>> machines;
  for (const RankFacts& rank : facts) {
    machines[{rank.node, strnlen(rank.node, sizeof rank.node)}].push_back(rank);
  }
  const std::string_view here(own.node, strnlen(own.node, sizeof own.node));
  Crowding found;
  for (const auto& [name, ranks] : machines) {
    if (static_cast<int>(ranks.size()) <= cores_of(ranks)) continue;
    found.anywhere = true;
    found.here = found.here || name == here;
  }
  return found;
}

}  // namespace ropewalk::node
