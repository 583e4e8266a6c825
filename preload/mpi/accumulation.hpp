// How elements of one predefined type in a window are combined with operands, so that no other
// accumulate comes between: while they are combined, all elements of the target are this rank's
// alone. For a single element that costs no more than an atomic, and for many a kernel is much
// faster.
#pragma once

#include <cstddef>
#include <optional>

#include "datatypes.hpp"
#include "onesided.hpp"

namespace ropewalk::preload::onesided {

// While one exists, no other rank combines or swaps elements of the target.
class Alone {
 public:
  Alone(ServedWindow& window, int target)
      : epochs_(window.epochs()), target_(static_cast<std::size_t>(target)) {
    epochs_.take(target_);
  }
  ~Alone() { epochs_.give(target_); }
  Alone(const Alone&) = delete;
  Alone& operator=(const Alone&) = delete;

 private:
  WindowEpochs& epochs_;
  std::size_t target_;
};

class Accumulation {
 public:
  // For a predefined type, and an operation of MPI's that accumulates may have.
  Accumulation(Word type, Word op);
  Accumulation(const Accumulation&) = delete;
  Accumulation& operator=(const Accumulation&) = delete;

  // False where MPI must judge the pair.
  bool usable() const noexcept { return usable_; }
  bool reads_operands() const noexcept { return op_ != ReductionOp::no_op; }
  std::optional<ReductionOp> op() const noexcept { return op_; }
  // Of what a kernel combines; none where nothing is combined, or MPI does it.
  std::optional<ElementType> element_type() const noexcept;
  // The kernel that combines elements without gaps; null where it does not, or MPI does.
  kernels::ReduceFunction kernel() const noexcept;
  std::size_t bytes() const noexcept { return bytes_; }  // from one element to the next
  // The bytes from the first of these elements to the last of their data.
  Count reach(Count count) const noexcept;
  // Copies elements, but not what lies in the gaps of pairs.
  void copy(std::byte* to, const std::byte* from, std::size_t count) const noexcept;

  // `before`, which may be null, gets what the elements were. The caller is alone with them.
  void apply(std::byte* elements, const std::byte* operands, std::byte* before,
             std::size_t count) const;

 private:
  std::optional<ReductionOp> op_;
  FoundReduction found_;
  KeptPattern pair_;  // null for elements without gaps
  std::size_t bytes_ = 0;
  bool usable_ = false;
};

// MPI_Compare_and_swap; false where MPI must judge the type.
bool compare_and_swap(ServedWindow&, int target, Count displacement, Word type,
                      const void* expected, const void* desired, void* before);

}  // namespace ropewalk::preload::onesided
