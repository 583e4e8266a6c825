// How a reduction combines elements.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/kernels.hpp"
#include "mpi/mpi.hpp"
#include "node/control.hpp"
#include "ropewalk/collectives.hpp"

namespace ropewalk::collectives {

// Elements are combined by our kernels, or by MPI_Reduce_local where only MPI knows how.
struct Operation {
  ElementType type = ElementType::byte;
  ReductionOp op = ReductionOp::sum;
  std::size_t element_bytes = 1;
  kernels::ReduceFunction function = nullptr;  // null for what MPI combines
  bool by_mpi = false;
  bool packed = false;  // elements travel without their gaps; MPI lays them out to combine them
  mpi::Datatype mpi_type{};
  mpi::Op mpi_op{};
  // Averages have this sum, which is divided before it is rounded. It is null for everything else.
  kernels::AverageFunction average = nullptr;
  double divisor = 1;
  // Tells allreduces of the same kind apart, as the buckets of a plan: all ranks must give the
  // same.
  std::uint32_t number = 0;

  // In elements: slices end on 128-byte borders of the buffers, so two ranks seldom write to one
  // line.
  std::size_t slice_grain() const {
    return std::max<std::size_t>(1, node::flag_stride / element_bytes);
  }
  // Returns the same operation for results that are combined further.
  Operation partial() const {
    Operation sum = *this;
    sum.average = nullptr;
    return sum;
  }
  // out_j = in_0 op in_1 op ..., `count` elements of each; an output may be one of the inputs.
  void combine(std::span<void* const> outputs, std::span<const void* const> inputs,
               std::size_t count, kernels::Stores stores) const;
  std::uint32_t code() const noexcept;  // for the header of a call, below 2^24
  static bool is_by_mpi(std::uint32_t code) { return (code >> 23 & 1) != 0; }
};
// Throws Error(argument) for a pair that MPI does not allow.
const Operation& operation(ElementType, ReductionOp);

}  // namespace ropewalk::collectives
