// Halo exchanges as programs write them with MPI alone. With its source, the one file of this bench
// that knows src/.
#pragma once

#include <memory>
#include <string>

#include "stencil/ways.hpp"

namespace ropewalk::bench {

// Collective. `name`: isend, packed or neighbor_alltoallw.
std::unique_ptr<StencilWay> make_mpi_way(const std::string& name, const CartesianGrid&,
                                         StencilBlock&);

}  // namespace ropewalk::bench
