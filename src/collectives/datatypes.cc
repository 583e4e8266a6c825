#include "collectives/datatypes.hpp"

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

mpi::Datatype mpi_type(rw_type type) {
  return is_own(type, RW_FIRST_TYPE) ? mpi::datatype(own_type(type)) : handle<mpi::Datatype>(type);
}

}  // namespace

Elements elements(rw_type type) {
  if (is_own(type, RW_FIRST_TYPE)) return {size_of(own_type(type)), false, {}};
  const auto given = handle<mpi::Datatype>(type);
  if (const auto known = mpi::element_type(given)) return {size_of(*known), false, given};
  const mpi::Extent extent = mpi::type_extent(given);
  const std::int64_t size = mpi::type_size(given);
  const bool contiguous = extent.lower == 0 && extent.true_lower == 0 && extent.bytes == size &&
                          extent.true_bytes == size;
  return {static_cast<std::size_t>(size), !contiguous, given};
}

Operation operation(rw_type type, rw_op op) {
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
  const Elements given = elements(type);
  if (given.packed) {
    throw Error(ErrorCode::unsupported,
                "type: reductions of a derived type with gaps are left to MPI; call MPI's own");
  }
  return {.element_bytes = given.bytes,
          .by_mpi = true,
          .mpi_type = mpi_type(type),
          .mpi_op = reduction ? mpi::op(*reduction) : handle<mpi::Op>(op)};
}

Contiguous::Contiguous(const Elements& elements, const void* data, std::size_t count,
                       mpi::Comm comm)
    : elements_(elements),
      original_(const_cast<void*>(data)),
      count_(count),
      comm_(comm),
      data_(original_) {
  if (!elements.packed || data == nullptr || is_in_place(data)) return;
  copy_.resize(count * elements.bytes);
  data_ = copy_.data();
}

void Contiguous::fill() {
  if (!copy_.empty()) mpi::pack(original_, count_, elements_.type, data_, comm_);
}

void Contiguous::finish() {
  if (!copy_.empty()) mpi::unpack(data_, original_, count_, elements_.type, comm_);
}

}  // namespace ropewalk::collectives
