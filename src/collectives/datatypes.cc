#include "collectives/datatypes.hpp"

#include <cstring>
#include <new>
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

// Returns true when the packed bytes of an element are those of memory, in their order. There is a
// pass for each digit of k, in which byte k holds that digit of the place where it lies in memory.
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
bool is_absolute(const mpi::TypeExtent& extent) { return extent.true_lower >= 4096; }

// Sizes do not tell a type whose blocks are shuffled or overlap. What it was made of does; where
// MPI does not say, elements of a bounded size are tried, and larger ones packed.
bool is_plain(mpi::Datatype type, std::size_t bytes) {
  constexpr std::size_t most_tried = std::size_t{64} << 10;  // two copies, and three passes
  try {
    const mpi::Order order = mpi::order_of(type);
    if (order != mpi::Order::unknown) return order == mpi::Order::ascending;
    return bytes <= most_tried && keeps_order(type, bytes);
  } catch (const std::bad_alloc&) {  // packing is always right, and each rank's own affair
    return false;
  }
}

Elements mpi_elements(mpi::Datatype type) {
  const mpi::TypeExtent extent = mpi::type_extent(type);
  const std::int64_t size = mpi::type_size(type);
  const auto bytes = static_cast<std::size_t>(size);
  const bool dense = extent.lower == 0 && extent.true_lower == 0 && extent.bytes == size &&
                     extent.true_bytes == size;
  const bool plain = dense && (mpi::is_predefined(type) || is_plain(type, bytes));
  return {bytes, !plain, is_absolute(extent), type, extent.bytes};
}

bool has_gaps(ElementType type) {
  return type == ElementType::double_int || type == ElementType::long_int ||
         type == ElementType::short_int || type == ElementType::long_double_int;
}

Elements own_elements(ElementType type, mpi::Datatype handle) {
  const std::size_t bytes = size_of(type);
  return {bytes, false, false, handle, static_cast<std::int64_t>(bytes), has_gaps(type)};
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

Operation combined_by_mpi(mpi::Datatype type, mpi::Op op, const Elements& elements) {
  return {.element_bytes = elements.bytes,
          .by_mpi = true,
          .packed = elements.packed,
          .mpi_type = type,
          .mpi_op = op};
}

// The operation is tried on pairs of small integers: of both signs where the sign may matter, none
// below 0 in arithmetic. So nothing overflows a byte with or without a sign, where Open MPI's
// result depends on the instruction set. The result is then a fact of the MPI library, and the same
// on all ranks.
constexpr std::int64_t numbers = 11;
constexpr std::size_t samples = std::size_t{numbers * numbers};

void put(std::byte* to, ElementType type, std::int64_t value) {
  if (type == ElementType::float32) {
    const auto number = static_cast<float>(value);
    std::memcpy(to, &number, sizeof number);
  } else if (type == ElementType::float64) {
    const auto number = static_cast<double>(value);
    std::memcpy(to, &number, sizeof number);
  } else {
    std::memcpy(to, &value, size_of(type));
  }
}

struct Sample {
  Sample(ElementType type, ReductionOp op)
      : left(samples * size_of(type)), right(samples * size_of(type)) {
    const bool arithmetic = op == ReductionOp::sum || op == ReductionOp::prod;
    const std::int64_t least = arithmetic ? 0 : -5;
    std::size_t at = 0;
    for (std::int64_t a = least; a < least + numbers; ++a) {
      for (std::int64_t b = least; b < least + numbers; ++b, at += size_of(type)) {
        put(left.data() + at, type, a);
        put(right.data() + at, type, b);
      }
    }
  }
  std::vector<std::byte> left;
  std::vector<std::byte> right;
};

// Whether our kernel gives the bits that MPI_Reduce_local does.
bool same_bits(const Operation& ours, const Operation& theirs, const Sample& sample) {
  const void* const inputs[] = {sample.left.data(), sample.right.data()};
  std::vector<std::byte> mine(sample.left.size());
  std::vector<std::byte> by_mpi(sample.left.size());
  void* outputs[] = {mine.data(), by_mpi.data()};
  ours.combine(std::span(outputs, 1), inputs, samples, kernels::Stores::temporal);
  theirs.combine(std::span(outputs + 1, 1), inputs, samples, kernels::Stores::temporal);
  return mine == by_mpi;
}

// Replaces MPI's operation by a kernel for numbers of that size, where MPI gives the same results:
// only the MPI knows whether a char has a sign, and what counts as true.
std::optional<Operation> same_by_kernel(const Operation& theirs, ReductionOp op, bool integral) {
  constexpr ElementType candidates[] = {
      ElementType::int8,    ElementType::uint8,  ElementType::int16, ElementType::uint16,
      ElementType::int32,   ElementType::uint32, ElementType::int64, ElementType::uint64,
      ElementType::float32, ElementType::float64};
  for (const ElementType type : candidates) {
    if (size_of(type) != theirs.element_bytes || !supports(op, type)) continue;
    if (is_integer(type) != integral) continue;
    const Operation& ours = operation(type, op);
    if (same_bits(ours, theirs, Sample(type, op))) return ours;
  }
  return std::nullopt;
}

constexpr std::size_t largest_asked = 64;  // bytes, see mpi::accepts

}  // namespace

Elements elements(rw_type type) {
  if (is_own(type, RW_FIRST_TYPE)) return own_elements(own_type(type), {});
  const auto given = handle<mpi::Datatype>(type);
  if (const auto known = mpi::element_type(given)) return own_elements(*known, given);
  return mpi_elements(given);
}

std::optional<Operation> operation_of_mpi(mpi::Datatype type, ReductionOp op,
                                          const Elements& elements) {
  const auto element = mpi::element_type(type);
  const bool certain =
      mpi::is_predefined(type) && mpi::defined(op, type) && !mpi::is_shared_integer(type);
  if (certain && element && supports(op, *element)) {
    return operation(*element, op);
  }
  if (elements.bytes == 0 || elements.packed || elements.bytes > largest_asked) return std::nullopt;
  if (!mpi::accepts(type, mpi::op(op))) return std::nullopt;
  const Operation theirs = combined_by_mpi(type, mpi::op(op), elements);
  const bool integral = mpi::is_integral(type);
  // Types by MPI_Type_create_f90_real have no other name; of what else only MPI knows, such as
  // halves and quadruples, a few numbers do not tell enough.
  if (!integral && element != ElementType::float32 && element != ElementType::float64) {
    return theirs;
  }
  return same_by_kernel(theirs, op, integral).value_or(theirs);
}

Operation operation(rw_type type, rw_op op) {
  const bool own_op_number = is_own(op, RW_FIRST_OP);
  const auto reduction =
      own_op_number ? std::optional(own_op(op)) : mpi::reduction_op(handle<mpi::Op>(op));
  if (is_own(type, RW_FIRST_TYPE)) {
    if (reduction) return operation(own_type(type), *reduction);
    return combined_by_mpi(mpi_type(type), handle<mpi::Op>(op), elements(type));
  }
  const auto given = handle<mpi::Datatype>(type);
  const Elements of_type = elements(type);
  if (!reduction) return combined_by_mpi(given, handle<mpi::Op>(op), of_type);
  const auto element = mpi::element_type(given);
  if (own_op_number && element && supports(*reduction, *element)) {
    return operation(*element, *reduction);
  }
  if (const auto found = operation_of_mpi(given, *reduction, of_type)) return *found;
  throw Error(ErrorCode::argument, std::string("op: this MPI does not define ") +
                                       ropewalk::name(*reduction) +
                                       " for elements of this type; see MPI 4.1, section 6.9.2");
}

bool is_mpi_in_place(const void* buffer) { return mpi::loaded() && buffer == mpi::in_place(); }

}  // namespace ropewalk::collectives
