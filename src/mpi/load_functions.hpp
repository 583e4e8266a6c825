// Fills the table of MPI functions from the symbols of one library.
#pragma once

#include <string>

#include "mpi/abi.hpp"
#include "mpi/functions.hpp"

namespace ropewalk::mpi {

// Returns the name of the first function that is missing though MPI 3.0 has it, "" if none is.
std::string load_functions(Functions&, const SymbolLookup&);

}  // namespace ropewalk::mpi
