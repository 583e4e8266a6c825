// Descriptors between processes of one user, without files.
#pragma once

#include <span>
#include <vector>

#include "mpi/mpi.hpp"
#include "node/peers.hpp"
#include "os/file.hpp"

namespace ropewalk::node {

// A rank from which nothing comes for so long has failed.
constexpr int handover_patience_ms = 10000;

// Collective over `comm`: each rank sends `own` to every other over abstract sockets, whose ends
// are checked on both sides. The result has one descriptor a rank, invalid for this rank; empty on
// every rank where a socket call failed or a rank's descriptor did not come.
std::vector<os::Descriptor> swap_descriptors(mpi::Comm comm, int own,
                                             std::span<const RankFacts> facts,
                                             int patience_ms = handover_patience_ms);

}  // namespace ropewalk::node
