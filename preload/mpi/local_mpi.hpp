// Functions of MPI that the drop-in alone needs: groups, error handlers, attributes of datatypes.
#pragma once

#include "mpi/mpi.hpp"

namespace ropewalk::preload {

// Every rank of the communicator is one of this process's MPI_COMM_WORLD. Local.
bool in_this_world(mpi::Comm);

// Hands an error to the communicator's error handler as MPI does, which may end the program;
// returns its code. `text` is what MPI_Error_string gives for it.
int raise(mpi::Comm, const char* text) noexcept;

// An attribute of a datatype; `function` is called with it when the datatype is freed.
void set_type_attribute(mpi::Datatype, void* value, void (*function)(void*) noexcept);

}  // namespace ropewalk::preload
