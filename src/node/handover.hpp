// Descriptors between processes of one user, without files.
#pragma once

#include <span>
#include <vector>

#include "mpi/mpi.hpp"
#include "node/peers.hpp"

namespace ropewalk::node {

// Collective over `comm`: each rank sends `own` to every other over abstract datagram sockets. The
// result has one descriptor a rank, invalid for this rank; empty where a socket call failed.
std::vector<os::Descriptor> swap_descriptors(mpi::Comm comm, int own,
                                             std::span<const RankFacts> facts);

}  // namespace ropewalk::node
