// Elements combined by our kernels, or by MPI_Reduce_local where only MPI knows how.
#include <array>
#include <cstring>

#include "collectives/engine.hpp"
#include "mpi/datatypes.hpp"

namespace ropewalk::collectives {
namespace {

// MPI_Reduce_local(in, inout) gives in op inout, so the last input is combined first: the same
// bracketing on every rank. It works in a copy, since an output may be one of the inputs.
void combine_by_mpi(const Operation& operation, std::span<void* const> outputs,
                    std::span<const void* const> inputs, std::size_t count) {
  const std::size_t bytes = count * operation.element_bytes;
  std::vector<std::byte> result(bytes);
  std::memcpy(result.data(), inputs.back(), bytes);
  for (std::size_t index = inputs.size() - 1; index-- > 0;) {
    mpi::reduce_local(inputs[index], result.data(), count, operation.mpi_type, operation.mpi_op);
  }
  for (void* output : outputs) std::memcpy(output, result.data(), bytes);
}

}  // namespace

namespace {

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
    throw Error(ErrorCode::argument, std::string("op: ") + ropewalk::name(op) +
                                         " is not defined for elements of type " +
                                         ropewalk::name(type));
  }
  return table[row][column];
}

std::uint32_t Operation::code() const noexcept {
  return (by_mpi ? 1U << 16 : 0U) | static_cast<std::uint32_t>(type) << 8 |
         static_cast<std::uint32_t>(op);
}

void Operation::combine(std::span<void* const> outputs, std::span<const void* const> inputs,
                        std::size_t count, kernels::Stores stores) const {
  if (count == 0 || outputs.empty()) return;
  if (by_mpi) {
    combine_by_mpi(*this, outputs, inputs, count);
  } else {
    function(outputs.data(), static_cast<int>(outputs.size()), inputs.data(),
             static_cast<int>(inputs.size()), count, stores);
  }
}

}  // namespace ropewalk::collectives
