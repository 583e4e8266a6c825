// Elements combined by our kernels, or by MPI_Reduce_local where only MPI knows how.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

#include "collectives/operation.hpp"
#include "mpi/datatypes.hpp"

namespace ropewalk::collectives {
namespace {

// Holds elements of a derived type as MPI wants them: in memory of our own, gaps included.
class Laid {
 public:
  Laid(mpi::Datatype type, std::size_t elements) : type_(type), memory_(room(type, elements)) {
    const mpi::TypeExtent extent = mpi::type_extent(type);
    const std::int64_t lowest = first_byte(extent, elements);
    // The address of element 0 is aligned as it would be at address 0: as well as the caller's.
    const auto start = reinterpret_cast<std::uintptr_t>(memory_.data());
    const std::uintptr_t aligned = (start + 2 * alignment - 1) / alignment * alignment;
    const std::int64_t offset = (lowest % alignment + alignment) % alignment;
    // An address below our memory, or anywhere for a type of absolute addresses: only MPI uses it.
    base_ = aligned + static_cast<std::uintptr_t>(offset - lowest);
  }

  void* data() const { return reinterpret_cast<void*>(base_); }
  void fill(const void* packed, std::size_t count) {
    mpi::unpack(packed, data(), count, type_, mpi::comm_self());
  }
  void read(void* packed, std::size_t count) const {
    mpi::pack(data(), count, type_, packed, mpi::comm_self());
  }

  // How many elements are combined at once: what fits the first cache, twice.
  static std::size_t block(mpi::Datatype type) {
    const auto bytes = static_cast<std::size_t>(mpi::type_extent(type).true_bytes);
    return std::max<std::size_t>(1, (std::size_t{16} << 10) / std::max<std::size_t>(1, bytes));
  }

 private:
  static constexpr std::int64_t alignment = 64;  // more than any C type needs

  static std::int64_t first_byte(const mpi::TypeExtent& extent, std::size_t elements) {
    const auto last = static_cast<std::int64_t>(elements - 1) * extent.bytes;
    return std::min<std::int64_t>(0, last) + extent.true_lower;
  }
  static std::size_t room(mpi::Datatype type, std::size_t elements) {
    const mpi::TypeExtent extent = mpi::type_extent(type);
    const auto last = static_cast<std::int64_t>(elements - 1) * extent.bytes;
    return static_cast<std::size_t>(std::abs(last) + extent.true_bytes + 3 * alignment);
  }

  mpi::Datatype type_;
  std::vector<std::byte> memory_;
  std::uintptr_t base_ = 0;
};

// MPI_Reduce_local(in, inout) gives in op inout, so the last input is combined first: the same
// bracketing on every rank. It works in a copy, since an output may be one of the inputs.
void combine_block(const Operation& operation, std::span<void* const> outputs,
                   std::span<const void* const> inputs, std::size_t begin, std::size_t count,
                   std::byte* result) {
  const std::size_t offset = begin * operation.element_bytes;
  const std::size_t bytes = count * operation.element_bytes;
  const auto part = [&](const void* input) {
    return static_cast<const std::byte*>(input) + offset;
  };
  std::memcpy(result, part(inputs.back()), bytes);
  for (std::size_t index = inputs.size() - 1; index-- > 0;) {
    mpi::reduce_local(part(inputs[index]), result, count, operation.mpi_type, operation.mpi_op);
  }
  for (void* output : outputs) std::memcpy(static_cast<std::byte*>(output) + offset, result, bytes);
}

// Combines block by block on the stack, within the first cache; elements that are larger, one by
// one.
void combine_by_mpi(const Operation& operation, std::span<void* const> outputs,
                    std::span<const void* const> inputs, std::size_t count) {
  constexpr std::size_t block_bytes = std::size_t{8} << 10;
  alignas(64) std::array<std::byte, block_bytes> block;
  std::vector<std::byte> large;
  std::byte* result = block.data();
  const std::size_t element = std::max<std::size_t>(1, operation.element_bytes);
  if (element > block_bytes) {
    large.resize(element);
    result = large.data();
  }
  const std::size_t step = std::max<std::size_t>(1, block_bytes / element);
  for (std::size_t begin = 0; begin < count; begin += step) {
    combine_block(operation, outputs, inputs, begin, std::min(step, count - begin), result);
  }
}

// Does the same for elements with gaps, block by block: they are unpacked, combined, and packed
// again.
void combine_packed(const Operation& operation, std::span<void* const> outputs,
                    std::span<const void* const> inputs, std::size_t count) {
  const std::size_t block = std::min(count, Laid::block(operation.mpi_type));
  Laid left(operation.mpi_type, block);
  Laid result(operation.mpi_type, block);
  std::vector<std::byte> packed(block * operation.element_bytes);
  const auto part = [&](const void* input, std::size_t begin) {
    return static_cast<const std::byte*>(input) + begin * operation.element_bytes;
  };
  for (std::size_t begin = 0; begin < count; begin += block) {
    const std::size_t now = std::min(block, count - begin);
    result.fill(part(inputs.back(), begin), now);
    for (std::size_t index = inputs.size() - 1; index-- > 0;) {
      left.fill(part(inputs[index], begin), now);
      mpi::reduce_local(left.data(), result.data(), now, operation.mpi_type, operation.mpi_op);
    }
    result.read(packed.data(), now);
    const std::size_t bytes = now * operation.element_bytes;
    for (void* output : outputs) {
      std::memcpy(static_cast<std::byte*>(output) + begin * operation.element_bytes, packed.data(),
                  bytes);
    }
  }
}

using Table = std::array<std::array<Operation, reduction_op_count>, element_type_count>;

Table make_table() {
  Table table{};
  for (int type = 0; type < element_type_count; ++type) {
    for (int op = 0; op < reduction_op_count; ++op) {
      Operation& entry = table[type][op];
      entry.type = static_cast<ElementType>(type);
      entry.op = static_cast<ReductionOp>(op);
      entry.element_bytes = size_of(entry.type);
      entry.function = kernels::find(entry.type, entry.op);
    }
  }
  return table;
}

// The operations by which elements of a type can be reduced, as a list for people.
std::string defined_names(const Table::value_type& row) {
  std::string names;
  for (const Operation& each : row) {
    const bool combines = each.op != ReductionOp::replace && each.op != ReductionOp::no_op;
    if (each.function == nullptr || !combines) continue;
    names += (names.empty() ? "" : ", ") + std::string(ropewalk::name(each.op));
  }
  return names.empty() ? "elements of another type" : names;
}

}  // namespace

// Looked up, not made: this is on the way of every small message.
const Operation& operation(ElementType type, ReductionOp op) {
  static const Table table = make_table();
  const auto row = static_cast<std::size_t>(type);
  const auto column = static_cast<std::size_t>(op);
  if (row >= element_type_count) {
    throw Error(ErrorCode::argument, "type: " + std::to_string(static_cast<int>(type)) +
                                         " is no element type; see ElementType");
  }
  if (column >= reduction_op_count || table[row][column].function == nullptr) {
    throw Error(ErrorCode::argument,
                std::string("op: ") + ropewalk::name(op) + " is not defined for elements of type " +
                    ropewalk::name(type) + ", expected " + defined_names(table[row]));
  }
  return table[row][column];
}

std::uint32_t Operation::code() const noexcept {
  // Where MPI combines, ranks can compare the size of an element, which is all they must share to
  // be safe.
  if (by_mpi) return 1U << 23 | (static_cast<std::uint32_t>(element_bytes) & 0x7fffffU);
  const std::uint32_t averaged = average != nullptr ? 1U << 22 : 0;
  return averaged | static_cast<std::uint32_t>(type) << 8 | static_cast<std::uint32_t>(op);
}

void Operation::combine(std::span<void* const> outputs, std::span<const void* const> inputs,
                        std::size_t count, kernels::Stores stores) const {
  if (count == 0 || outputs.empty()) return;
  if (packed) {
    combine_packed(*this, outputs, inputs, count);
  } else if (by_mpi) {
    combine_by_mpi(*this, outputs, inputs, count);
  } else if (average != nullptr) {
    average(outputs.data(), static_cast<int>(outputs.size()), inputs.data(),
            static_cast<int>(inputs.size()), count, divisor, stores);
  } else {
    function(outputs.data(), static_cast<int>(outputs.size()), inputs.data(),
             static_cast<int>(inputs.size()), count, stores);
  }
}

}  // namespace ropewalk::collectives
