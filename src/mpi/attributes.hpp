// MPI attributes: the data that ropewalk attaches to a communicator of the caller, and the way it
// learns that the communicator is freed.
#pragma once

#include "mpi/mpi.hpp"

namespace ropewalk::mpi {

// Called with the value when its communicator is freed (MPI_COMM_SELF's: at MPI_Finalize), when
// the value is replaced and when it is deleted. Duplicates of a communicator do not inherit it.
using OnDelete = void (*)(void* value) noexcept;

struct Keyval {
  int value;
};
Keyval create_keyval(OnDelete);
void free_keyval(Keyval&);  // attributes that are set stay until their communicators go

void set_attribute(Comm, Keyval, void* value);
void* attribute(Comm, Keyval);  // null where none is set
void delete_attribute(Comm, Keyval);

inline constexpr int least_tag_bound = 32767;  // what the standard promises of MPI_TAG_UB
int tag_upper_bound(Comm);                     // MPI_TAG_UB

}  // namespace ropewalk::mpi
