// Types and operations as the C interface names them: ropewalk's numbers or MPI's handles. Also the
// values of either that mean a buffer in place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "collectives/operation.hpp"
#include "ropewalk/collectives.hpp"
#include "ropewalk/ropewalk.h"

namespace ropewalk::collectives {

// The elements of a call, as bytes to move. Gaps of derived types are packed away.
struct Elements {
  std::size_t bytes = 1;  // of data in one element
  bool packed = false;    // not the bytes of memory in their order: MPI packs and unpacks
  bool absolute = false;  // displacements are addresses: null is MPI_BOTTOM, a proper buffer
  mpi::Datatype type{};
  std::int64_t extent = 1;  // bytes from one element to the next
  // A pair of MPI's whose bytes have gaps among them, or behind them. `bytes` counts these in.
  bool gaps = false;
};
// Throws Error(argument) for an own number that is no type. A derived type costs a few local MPI
// calls.
Elements elements(rw_type type);

// Throws Error(argument) for numbers that are no type or operation, and for pairs MPI does not
// allow; Error(unsupported) for an operation of the user on a type that this MPI does not have.
Operation operation(rw_type type, rw_op op);

// Combines a datatype of MPI's by a predefined operation: by a kernel, where the standard defines
// the pair or the kernel does what this MPI does, else by MPI_Reduce_local. The result is none
// where the MPI refuses the pair. It is the same on all ranks, which have one MPI. The function
// asks MPI, so the answer is to be kept.
std::optional<Operation> operation_of_mpi(mpi::Datatype, ReductionOp, const Elements&);

// Returns true for our in_place and for the loaded MPI's MPI_IN_PLACE. Every MPI's is -1 or 1
// (mpi/abi.cc), so that real addresses are told apart at once.
bool is_mpi_in_place(const void* buffer);
inline bool is_in_place(const void* buffer) {
  if (buffer == in_place) return true;
  return reinterpret_cast<std::uintptr_t>(buffer) == 1 && is_mpi_in_place(buffer);
}

}  // namespace ropewalk::collectives
