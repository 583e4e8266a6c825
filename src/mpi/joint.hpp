// An error of one rank as an error of all of them.
#pragma once

#include <optional>

#include "mpi/mpi.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::mpi {

// Collective. Throws on every rank the error of the lowest rank that has one, and says which that
// is.
void share_error(Comm, const std::optional<Error>& own);

}  // namespace ropewalk::mpi
