#include "collectives/datatypes.hpp"

#include <optional>
#include <string>
#include <vector>

#include "mpi/datatypes.hpp"

namespace ropewalk::collectives {
namespace {

constexpr std::uint64_t own_numbers = 0x1000;  // reserved from RW_FIRST_TYPE and RW_FIRST_OP each

bool is_own(std::uint64_t number, std::uint64_t first) {
  return number >= first && number - first < own_numbers;
}

ElementType own_type(rw_type type) {
  const std::uint64_t index = type - RW_FIRST_TYPE;
  if (index >= element_type_count) {
    throw Error(ErrorCode::argument, "type: RW_FIRST_TYPE + " + std::to_string(index) +
                                         " is no type; use one of RW_INT8 ... or RW_MPI_TYPE()");
  }
  return static_cast<ElementType>(index);
}

// MPICH's handles are ints: a negative one may arrive with its sign in the upper half.
template <class Handle>
Handle handle(std::uint64_t number) {
  return {mpi::family() == mpi::Family::mpich ? static_cast<std::uint32_t>(number)
                                              : static_cast<std::uintptr_t>(number)};
}

ReductionOp own_op(rw_op op) {
  const std::uint64_t index = op - RW_FIRST_OP;
  if (index >= reduction_op_count) {
    throw Error(ErrorCode::argument, "op: RW_FIRST_OP + " + std::to_string(index) +
                                         " is no operation; use one of RW_MAX ... or RW_MPI_OP()");
  }
  return static_cast<ReductionOp>(index);
}

// True when the packed bytes of an element are those of memory, in their order: sizes do not tell a
// type whose blocks are shuffled or overlap. Byte k says, in a pass for each digit of k, where it
// lay; only derived types of the right sizes are asked.
bool keeps_order(mpi::Datatype type, std::size_t bytes) {
  std::vector<std::byte> element(bytes);
  std::vector<std::byte> packed(bytes);
  for (std::size_t rest = bytes, shift = 0; rest > 0; rest >>= 8, shift += 8) {
    for (std::size_t at = 0; at < bytes; ++at) element[at] = static_cast<std::byte>(at >> shift);
    mpi::pack(element.data(), 1, type, packed.data(), mpi::comm_self());
    if (packed != element) return false;
  }
  return true;
}

// No object lies in the first page, and no type reaches further than the lower half of the
// addresses: a displacement in between, with a null buffer, is an address.
bool is_absolute(const mpi::Extent& extent) { return extent.true_lower >= 4096; }

Elements mpi_elements(mpi::Datatype type) {
  const mpi::Extent extent = mpi::type_extent(type);
  const std::int64_t size = mpi::type_size(type);
  const auto bytes = static_cast<std::size_t>(size);
  const bool dense = extent.lower == 0 && extent.true_lower == 0 && extent.bytes == size &&
                     extent.true_bytes == size;
  const bool plain = dense && (mpi::is_predefined(type) || keeps_order(type, bytes));
  return {bytes, !plain, is_absolute(extent), type, extent.bytes};
}

Elements own_elements(ElementType type, mpi::Datatype handle) {
  return {size_of(type), false, false, handle, static_cast<std::int64_t>(size_of(type))};
}

mpi::Datatype mpi_type(rw_type type) {
  if (!is_own(type, RW_FIRST_TYPE)) return handle<mpi::Datatype>(type);
  const mpi::Datatype known = mpi::datatype(own_type(type));
  if (known == mpi::datatype_null()) {
    throw Error(ErrorCode::unsupported, std::string("type: this MPI has no datatype for ") +
                                            name(own_type(type)) +
                                            ", and the operation is MPI's; convert to float32");
  }
  return known;
}

// One element of zeroes combined with another: MPI refuses the pair here, before any rank waits.
void try_out(const Operation& operation) {
  const std::vector<std::byte> zeroes(operation.element_bytes);
  std::vector<std::byte> result(operation.element_bytes);
  const void* const inputs[] = {zeroes.data(), zeroes.data()};
  void* const output = result.data();
  operation.combine(std::span(&output, 1), inputs, 1, kernels::Stores::temporal);
}

}  // namespace

Elements elements(rw_type type) {
  if (is_own(type, RW_FIRST_TYPE)) return own_elements(own_type(type), {});
  const auto given = handle<mpi::Datatype>(type);
  if (const auto known = mpi::element_type(given)) return own_elements(*known, given);
  return mpi_elements(given);
}

Operation operation(rw_type type, rw_op op, const Elements* known) {
  std::optional<ElementType> element;
  std::optional<ReductionOp> reduction;
  if (is_own(type, RW_FIRST_TYPE)) {
    element = own_type(type);
  } else {
    element = mpi::element_type(handle<mpi::Datatype>(type));
  }
  if (is_own(op, RW_FIRST_OP)) {
    reduction = own_op(op);
  } else {
    reduction = mpi::reduction_op(handle<mpi::Op>(op));
  }
  if (element && reduction) return operation(*element, *reduction);
  const Elements given = known != nullptr ? *known : elements(type);
  const Operation result{.element_bytes = given.bytes,
                         .by_mpi = true,
                         .packed = given.packed,
                         .mpi_type = mpi_type(type),
                         .mpi_op = reduction ? mpi::op(*reduction) : handle<mpi::Op>(op)};
  if (reduction) try_out(result);
  return result;
}

}  // namespace ropewalk::collectives
