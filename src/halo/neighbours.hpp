// Plans of direct exchanges: whether neighbours can read each other's memory, and where in it what
// they send lies.
#pragma once

#include <memory>
#include <vector>

#include "halo/direct.hpp"
#include "halo/links.hpp"
#include "ropewalk/halo.hpp"

namespace ropewalk::halo {

// Collective. Error(unsupported) on every rank where the ranks of the grid do not share a node, or
// where a neighbour would have to read memory of one rank that is not in its arena.
std::unique_ptr<Direct> direct_faces(const CartesianGrid&, const EndpointSet&, const Links&,
                                     const FacePackets&);
std::unique_ptr<Direct> direct_fields(const CartesianGrid&, const EndpointSet&, const Links&,
                                      const std::vector<Field>&);

}  // namespace ropewalk::halo
