// Faces in memory of a halo's own, for strategies that copy: a send and a receive buffer each.
#pragma once

#include <cstddef>
#include <vector>

#include "halo/links.hpp"
#include "halo/put.hpp"
#include "mpi/mpi.hpp"
#include "ropewalk/halo.hpp"
#include "ropewalk/memory.hpp"

namespace ropewalk::halo {

struct OwnFaces {
  Buffer<std::byte> memory;
  FacePackets packets;
};

OwnFaces own_faces(const Links&, const FaceSizes&);

// The same place in every turn.
Places places_of(const FacePackets&);

// Collective. Of halos of the same faces the one with which gathering faces, exchanging and reading
// them is fastest on its slowest rank, the same on all ranks; the first where there is no memory to
// gather them from. What they hold is overwritten.
std::size_t fastest_of(mpi::Comm, std::vector<Halo>&, const FaceSizes&);

}  // namespace ropewalk::halo
