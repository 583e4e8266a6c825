// Who sends whom which block in the neighbourhood collectives of a communicator.
#pragma once

#include <cstddef>
#include <vector>

#include "collectives/algorithms.hpp"
#include "mpi/mpi.hpp"

namespace ropewalk::preload {

struct CommunicatorEntry;

struct Neighbourhood {
  std::vector<int> destinations;                     // of each block sent; -1: nobody
  std::vector<collectives::IncomingBlock> incoming;  // each block received
  bool starts = false;  // MPI's nonblocking functions pair the blocks in this way, too

  bool sends(std::size_t block) const noexcept { return destinations[block] >= 0; }
  bool receives(std::size_t block) const noexcept { return incoming[block].source >= 0; }
  collectives::NeighbourRanks ranks() const noexcept { return {destinations, incoming}; }
};

// Returns null where MPI has to serve the neighbourhood of a communicator that has a team. The
// first call is collective. All ranks get one, or none does. Where nonblocking collectives are
// served, the first call is made with the team, since a call that is started must not wait.
const Neighbourhood* neighbourhood_of(CommunicatorEntry&) noexcept;

}  // namespace ropewalk::preload
