// The ranks of a communicator that windows are made of: whether they share a node, and which
// processes they are, so that a rank that waits notices when one of them has died.
#pragma once

#include <memory>
#include <vector>

#include "mpi/mpi.hpp"
#include "node/peers.hpp"

namespace ropewalk::preload::onesided {

// Collective: one entry a rank. A process is watched once, however many windows it is in. Nobody
// watches one that this process does not see, as in another namespace of process numbers.
std::vector<std::shared_ptr<node::Peer>> processes_of(mpi::Comm);

struct WindowRanks {
  bool share_node = false;
  bool crowded = false;                                // they are more than their cores
  std::vector<std::shared_ptr<node::Peer>> processes;  // only where they share a node
};
// Collective, but only the first time for a communicator: the answer is kept with it, since some
// programs make a window in each step.
const WindowRanks& window_ranks(mpi::Comm);

}  // namespace ropewalk::preload::onesided
