// Which types and operations of ropewalk MPI's datatypes and operations stand for, and what only
// MPI can do with them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "mpi/mpi.hpp"
#include "ropewalk/types.hpp"

namespace ropewalk::mpi {

// The element type behind a predefined datatype, those of MPI_Type_create_f90_* among them; none
// for derived ones, for Fortran's logicals and pairs of reals, and for sizes that ropewalk has no
// type of. Local: a hash probe, and a call of MPI or two where Fortran or a derived type is asked
// about.
std::optional<ElementType> element_type(Datatype);
// Tells whether it is a predefined datatype of MPI's own, whether ropewalk has an element type for
// it or not. Local.
bool is_predefined(Datatype);
std::optional<ReductionOp> reduction_op(Op);  // none for operations of the user

// Tells whether it is an integer, a character or a truth value: MPI may combine these as ropewalk's
// integers.
bool is_integral(Datatype);
// Fortran's integers, MPI_AINT, MPI_OFFSET and MPI_COUNT: which integer of C they are is the MPI's
// choice, its sign as well (Open MPI 5.0.11 compares offsets without one).
bool is_shared_integer(Datatype);
// Every MPI must combine the type by this operation: MPI 5.0, sections 6.9.2 and 6.9.4.
bool defined(ReductionOp, Datatype);
// Tells whether the MPI at hand does so, whatever the standard says: it is asked to combine two
// elements, of at most 64 bytes from the first to the last. Errors of other threads that come at
// this very moment are returned to them, whatever error handler MPI_COMM_WORLD and MPI_COMM_SELF
// have.
bool accepts(Datatype, Op);

// This is the way back. It returns datatype_null() for float16 and bfloat16, which MPI 5.0 does not
// have.
Datatype datatype(ElementType);
Op op(ReductionOp);
Datatype datatype_null();

std::int64_t type_size(Datatype);  // bytes of data in one element, without its gaps

struct TypeExtent {
  std::int64_t lower = 0;
  std::int64_t bytes = 0;  // from one element to the next
  std::int64_t true_lower = 0;
  std::int64_t true_bytes = 0;  // from the first byte of data to the last
};
TypeExtent type_extent(Datatype);

// How the data of one element lie in memory.
enum class Order {
  ascending,  // in the order of the type map, and no two overlap
  other,      // not so
  unknown     // of more than a million blocks, or of an MPI that does not tell
};
// Finds the order by what the type was made of (MPI_Type_get_envelope): no data are touched. Local.
Order order_of(Datatype);
// Says whether accepts() returns true for each predefined type that this one is made of. The result
// is false where order_of() is unknown. Local.
bool consists_of(Datatype, const std::function<bool(Datatype)>& accepts);

// Runs of bytes at equal distances, and such groups at equal distances, level by level.
struct StridedBlock {
  struct Level {
    std::int64_t count;
    std::int64_t stride;  // bytes
  };
  static constexpr std::size_t most_levels = 6;

  std::int64_t offset = 0;  // bytes from the element's address to the first run
  std::int64_t run = 0;     // bytes
  std::size_t levels = 0;
  std::array<Level, most_levels> level{};  // innermost first
};
// Puts `count` of the block, `stride` bytes apart, in its place; false where it has no level left.
bool repeat(StridedBlock&, std::int64_t count, std::int64_t stride);

// Where the data of one element lie, in the order of the type map. The result is none for more than
// `most` blocks, and where order_of() is unknown. Local.
std::optional<std::vector<StridedBlock>> strided_blocks(Datatype, std::size_t most);

bool commutative(Op);

// Computes inout[i] = in[i] op inout[i]. Local; any count is allowed.
void reduce_local(const void* in, void* inout, std::size_t count, Datatype, Op);

// Copy any count of a datatype to and from count * type_size bytes without gaps (the same machine
// on both sides). Local: the communicator only says whose representation it is. They throw
// Error(unsupported) for elements of 2 GiB and more whose order is unknown, where MPI has no
// MPI_Pack_c.
void pack(const void* data, std::size_t count, Datatype, void* packed, Comm);
void unpack(const void* packed, void* data, std::size_t count, Datatype, Comm);

}  // namespace ropewalk::mpi
