// The joint checks of a halo: every rank learns the facts of all, and all come to the same verdict.
#pragma once

#include <span>
#include <vector>

#include "halo/links.hpp"
#include "mpi/mpi.hpp"
#include "ropewalk/halo.hpp"

namespace ropewalk::halo {

enum class Form { faces, fields, sizes };

inline mpi::Comm comm_of(const CartesianGrid& grid) { return {grid.communicator().handle()}; }

// Collective. That grid and endpoints belong together, and that all ranks want the same exchange.
void check_setup(const CartesianGrid&, const EndpointSet&, const HaloOptions&, Form,
                 std::size_t fields);

// Collective. Counts and pointers, then that both sides of each face have equal bytes.
void check_faces(const CartesianGrid&, const FacePackets&);

// Collective. The same for faces whose buffers are not made yet.
void check_sizes(const CartesianGrid&, const FaceSizes&);

// Collective. Each field by itself, then against those of the neighbours.
void check_fields(const CartesianGrid&, const std::vector<Field>&);

}  // namespace ropewalk::halo
