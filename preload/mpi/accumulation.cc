#include "accumulation.hpp"

#include <array>
#include <cstring>
#include <optional>

#include "collectives/pattern.hpp"
#include "known_types.hpp"
#include "mpi/datatypes.hpp"

namespace ropewalk::preload::onesided {
namespace {

std::optional<ReductionOp> op_of(Word op) { return mpi::reduction_op({clean(op)}); }

bool combines(ReductionOp op) { return op != ReductionOp::replace && op != ReductionOp::no_op; }

FoundReduction reduction_to_apply(Word type, Word op, std::optional<ReductionOp> known) {
  if (!known || !combines(*known)) return FoundReduction();
  return reduction_of(type, clean(op));
}

}  // namespace

Accumulation::Accumulation(Word type, Word op)
    : op_(op_of(op)), found_(reduction_to_apply(type, op, op_)) {
  if (!op_) return;
  const FoundElements elements = elements_of(type);
  if (!elements || elements->packed) return;
  bytes_ = elements->bytes;
  if (elements->gaps) {
    pair_ = pattern_of(type);
    if (pair_ == nullptr || !pair_->known) return;
  }
  usable_ = bytes_ != 0 && (!combines(*op_) || static_cast<bool>(found_));
}

std::optional<ElementType> Accumulation::element_type() const noexcept {
  if (!found_ || found_->operation.by_mpi) return std::nullopt;
  return found_->operation.type;
}

kernels::ReduceFunction Accumulation::kernel() const noexcept {
  return element_type() && pair_ == nullptr ? found_->operation.function : nullptr;
}

Count Accumulation::reach(Count count) const noexcept {
  const auto bytes = static_cast<Count>(bytes_);
  return count == 0 ? 0 : (count - 1) * bytes + (pair_ == nullptr ? bytes : pair_->high);
}

void Accumulation::copy(std::byte* to, const std::byte* from, std::size_t count) const noexcept {
  if (pair_ == nullptr) {
    std::memcpy(to, from, count * bytes_);
    return;
  }
  const collectives::TypedPart target{to, count, pair_.get()};
  const collectives::TypedPart source{from, count, pair_.get()};
  collectives::copy_elements(source.elements(), target.elements(), source.bytes(),
                             kernels::Stores::temporal);
}

void Accumulation::apply(std::byte* elements, const std::byte* operands, std::byte* before,
                         std::size_t count) const {
  if (count == 0) return;
  if (before != nullptr) copy(before, elements, count);
  if (*op_ == ReductionOp::replace) copy(elements, operands, count);
  if (!combines(*op_)) return;
  const std::array<void*, 1> outputs{elements};
  const std::array<const void*, 2> inputs{elements, operands};
  found_->operation.combine(outputs, inputs, count, kernels::Stores::temporal);
}

namespace {

template <std::size_t bytes>
void swap_elements(std::byte* there, const void* expected, const void* desired, void* before) {
  std::array<std::byte, bytes> old;
  std::memcpy(old.data(), there, bytes);
  if (std::memcmp(old.data(), expected, bytes) == 0) std::memcpy(there, desired, bytes);
  std::memcpy(before, old.data(), bytes);
}

}  // namespace

bool compare_and_swap(ServedWindow& window, int target, Count displacement, Word type,
                      const void* expected, const void* desired, void* before) {
  const std::size_t bytes = known_bytes(clean(type));
  if (bytes == 0) return false;
  std::byte* there = window.at(target, displacement, 0, static_cast<Count>(bytes));
  const Alone alone(window, target);
  if (bytes == 8) return swap_elements<8>(there, expected, desired, before), true;
  if (bytes == 4) return swap_elements<4>(there, expected, desired, before), true;
  const bool same = std::memcmp(there, expected, bytes) == 0;
  std::memcpy(before, there, bytes);
  if (same) std::memcpy(there, desired, bytes);
  return true;
}

}  // namespace ropewalk::preload::onesided
