// Which node each rank of a communicator is on.
#pragma once

#include <vector>

#include "mpi/mpi.hpp"

namespace ropewalk::node {

// Collective. Returns the number of each rank's node. Throws Error(argument) on every rank where
// ROPEWALK_NODES of one is malformed, or where a setting that must be the same on all ranks is not.
std::vector<int> nodes_of_ranks(mpi::Comm comm);

}  // namespace ropewalk::node
