// Types and operations as the C interface names them: ropewalk's numbers or MPI's handles.
#pragma once

#include <cstddef>

#include "collectives/engine.hpp"
#include "ropewalk/ropewalk.h"

namespace ropewalk::collectives {

// The elements of a call, as bytes to move. Gaps of derived types are packed away.
struct Elements {
  std::size_t bytes = 1;  // of data in one element
  bool packed = false;    // not the bytes of memory in their order: MPI packs and unpacks
  bool absolute = false;  // displacements are addresses: null is MPI_BOTTOM, a proper buffer
  mpi::Datatype type{};
  std::int64_t extent = 1;  // bytes from one element to the next
};
// Error(argument) for an own number that is no type. A derived type costs a few local MPI calls.
Elements elements(rw_type type);

// Error(argument) for numbers that are no type or operation, and for pairs MPI does not allow;
// Error(unsupported) for an operation of the user on a type that this MPI does not have. Whether a
// predefined operation is defined for a type that only MPI knows, MPI is asked: the error is its.
// `known`: what elements(type) has given, where it is at hand.
Operation operation(rw_type type, rw_op op, const Elements* known = nullptr);

}  // namespace ropewalk::collectives
