// The copies that bring faces from rank to rank in a direct exchange, from the table of facts. All
// addresses are fixed here.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "halo/direct.hpp"
#include "halo/facts.hpp"
#include "halo/request.hpp"

namespace ropewalk::halo {

// The columns of the table of facts that say how memory is reached.
struct DirectColumns {
  std::size_t buffers = 0;  // the first of those of shown_memory(): a Reference in each
  // The first column of staged faces: for each direction it has an offset in the arena, or
  // no_memory. It is none where nothing is private.
  std::optional<std::size_t> staged;
};

// The copies of one link. What comes in over it is empty exactly where the other rank has nothing
// to send.
struct LinkCopies {
  FaceCopies in;
  FaceCopies out;  // empty where only the neighbour can make them
  // This rank stages what goes out into its places for even and for odd exchanges.
  std::array<std::vector<kernels::StridedCopy>, 2> packs;
};

// Where `scratch` is not null, what comes in goes there, and out is empty. Throws Error(system)
// where memory of the neighbour cannot be reached.
LinkCopies link_copies(const HaloRequest&, const HaloFacts&, const DirectColumns&, const Link&,
                       std::byte* scratch);

}  // namespace ropewalk::halo
