// In a barrier over nodes, the ranks of a node arrive at their lowest, the lowest ranks of the
// nodes disseminate, and each then releases its own node. It takes two flags inside a node, and
// ceil(log2 nodes) messages, one after the other, between nodes.
#include "collectives/nodes/algorithms.hpp"
#include "collectives/nodes/traffic.hpp"
#include "collectives/through_mpi.hpp"

namespace ropewalk::collectives::nodes {
namespace {

void arrive_at_leader(Engine& engine) {
  node::Slot& own = engine.arrivals().claim(Kind::barrier, 0);
  engine.team().slots().arrive();
  if (engine.rank() != 0) return;
  for (int peer = 1; peer < engine.size(); ++peer) engine.arrivals().of(peer, own);
  engine.team().slots().all_arrived();
  engine.arrivals().check(own);
}

// In round k each node hears of 2^k more (Hensgen, Finkel and Manber 1988).
void disseminate(Nodes& nodes) {
  const NodeLayout& layout = nodes.layout();
  const Header mine = header_of(Kind::barrier, 0);
  const int count = layout.count();
  for (int distance = 1; distance < count; distance *= 2) {
    const int to = layout.at((layout.node + distance) % count, 0);
    const int from = layout.at((layout.node - distance + count) % count, 0);
    Header theirs{};
    nodes.messages().exchange(&mine, sizeof mine, to, &theirs, sizeof theirs, from,
                              nodes.messages().movement_tag());
    check_header(mine, theirs, from);
  }
}

void let_go(Engine& engine) {
  node::Slot& own = engine.arrivals().claim(Kind::barrier, 1);
  engine.team().slots().arrive();
  if (engine.rank() == 0) return;
  engine.arrivals().of(0, own);
  engine.arrivals().check(own);
}

}  // namespace

void barrier(Nodes& nodes) {
  if (!tuning::serves_barrier(nodes.shape())) {
    ThroughMpi(nodes).barrier();
    return;
  }
  nodes.run([&] {
    nodes.path = Path::nodes;
    if (!nodes.alone()) arrive_at_leader(nodes.engine());
    if (nodes.layout().place() == 0) disseminate(nodes);
    if (!nodes.alone()) let_go(nodes.engine());
  });
}

}  // namespace ropewalk::collectives::nodes
