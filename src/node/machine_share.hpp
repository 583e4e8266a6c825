// Whether nodes are parts of one machine, as containers are, and share its cores.
#pragma once

#include "mpi/mpi.hpp"

namespace ropewalk::node {

// Collective. True when the ranks of the communicator that run on this one's machine, on whatever
// node, are more than the cores that they may use together: the same on all of them.
bool machine_is_crowded(mpi::Comm comm, int size);

}  // namespace ropewalk::node
