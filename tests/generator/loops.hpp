// What a collective must leave in a rank's receive buffer, by loops over all ranks' buffers, which
// share nothing with ropewalk or an MPI. It is for types of one scalar and predefined operations.
#pragma once

#include "generator/buffers.hpp"

namespace generator {

// `memory` holds what this rank's receive buffer held before the call, and then what it must hold.
void apply(const Catalogue&, const Case&, int rank, int ranks, const Memory& memory);

}  // namespace generator
