// Plans of direct exchanges: whether neighbours can reach each other's memory, and where in it lies
// what they send and receive.
#pragma once

#include <memory>
#include <vector>

#include "halo/direct.hpp"
#include "halo/links.hpp"
#include "halo/put.hpp"
#include "ropewalk/halo.hpp"
#include "ropewalk/memory.hpp"

namespace ropewalk::halo {

// Collective. Error(unsupported) on every rank where the ranks of the grid do not share a node, or
// where what one rank sends or receives is not in its arena.
//
// With `scratch` it is a rehearsal: what comes in goes to a buffer made there instead of the
// caller's ghosts, and each rank makes the copies of what it receives.
std::unique_ptr<Direct> direct_faces(const CartesianGrid&, const EndpointSet&, const Links&,
                                     const FacePackets&, Buffer<std::byte>* scratch = nullptr);
std::unique_ptr<Direct> direct_fields(const CartesianGrid&, const EndpointSet&, const Links&,
                                      const std::vector<Field>&,
                                      Buffer<std::byte>* scratch = nullptr);

// Collective, with faces that were checked. Error(unsupported) on every rank where the ranks of the
// grid do not share a node.
std::unique_ptr<Put> put_faces(const CartesianGrid&, const EndpointSet&, const Links&,
                               const FaceSizes&);

}  // namespace ropewalk::halo
