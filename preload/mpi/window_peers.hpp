// The processes that the ranks of served windows are, so that a rank that waits notices when one of
// them has died.
#pragma once

#include <memory>
#include <vector>

#include "mpi/mpi.hpp"
#include "node/peers.hpp"

namespace ropewalk::preload::onesided {

// Collective: one entry a rank. A process is watched once, however many windows it is in. Nobody
// watches one that this process does not see, as in another namespace of process numbers.
std::vector<std::shared_ptr<node::Peer>> processes_of(mpi::Comm);

}  // namespace ropewalk::preload::onesided
