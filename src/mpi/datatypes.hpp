// What MPI's datatypes and operations are to ropewalk, and what only MPI can do with them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "mpi/mpi.hpp"
#include "ropewalk/types.hpp"

namespace ropewalk::mpi {

// The element type behind a predefined datatype; none for derived ones, for Fortran's logicals and
// pairs of reals, and for sizes that ropewalk has no type of. Local, one hash probe.
std::optional<ElementType> element_type(Datatype);
// A predefined datatype of MPI's own, whether ropewalk has an element type for it or not. Local.
bool is_predefined(Datatype);
std::optional<ReductionOp> reduction_op(Op);  // none for operations of the user

// The way back. datatype_null() for float16 and bfloat16, which MPI 5.0 does not have.
Datatype datatype(ElementType);
Op op(ReductionOp);
Datatype datatype_null();

std::int64_t type_size(Datatype);  // bytes of data in one element, without its gaps

struct Extent {
  std::int64_t lower = 0;
  std::int64_t bytes = 0;  // from one element to the next
  std::int64_t true_lower = 0;
  std::int64_t true_bytes = 0;  // from the first byte of data to the last
};
Extent type_extent(Datatype);

bool commutative(Op);

// inout[i] = in[i] op inout[i]. Local; any count.
void reduce_local(const void* in, void* inout, std::size_t count, Datatype, Op);

// Any count of a datatype to and from count * type_size bytes without gaps (the same machine on
// both sides). Local: the communicator only says whose representation it is.
void pack(const void* data, std::size_t count, Datatype, void* packed, Comm);
void unpack(const void* packed, void* data, std::size_t count, Datatype, Comm);

}  // namespace ropewalk::mpi
