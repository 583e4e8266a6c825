#include "node/machine_share.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "node/peers.hpp"
#include "os/node_identity.hpp"

namespace ropewalk::node {

bool machine_is_crowded(mpi::Comm comm, int size) {
  RankFacts own{};
  const std::string machine = os::kernel_identity();
  std::memcpy(own.node, machine.data(), std::min(machine.size(), sizeof own.node - 1));
  add_cores(own);
  std::vector<RankFacts> facts(static_cast<std::size_t>(size));
  mpi::all_gather(&own, facts.data(), sizeof own, comm);
  std::erase_if(facts, [&](const RankFacts& rank) {
    return std::strncmp(rank.node, own.node, sizeof own.node) != 0;
  });
  return static_cast<int>(facts.size()) > cores_of(facts);
}

}  // namespace ropewalk::node
