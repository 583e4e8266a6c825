#include "accumulation.hpp"

#include <array>
#include <cstring>
#include <optional>

#include "mpi/datatypes.hpp"

namespace ropewalk::preload::onesided {
namespace {

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
  usable_ = bytes_ != 0 && (!combines(*op_) || static_cast<bool>(found_));
}

void Accumulation::apply(ServedWindow& window, int target, std::byte* elements,
                         const std::byte* operands, std::byte* before, std::size_t count) const {
  if (count == 0) return;
  const Alone alone(window, target);
  if (before != nullptr) std::memcpy(before, elements, count * bytes_);
  if (*op_ == ReductionOp::replace) std::memcpy(elements, operands, count * bytes_);
  if (!combines(*op_)) return;
  const std::array<void*, 1> outputs{elements};
  const std::array<const void*, 2> inputs{elements, operands};
  found_->operation.combine(outputs, inputs, count, kernels::Stores::temporal);
}

bool compare_and_swap(ServedWindow& window, int target, Count displacement, Word type,
                      const void* expected, const void* desired, void* before) {
  const FoundElements elements = elements_of(type);
  if (!elements || elements->packed || !mpi::is_predefined({clean(type)})) return false;
  const std::size_t bytes = elements->bytes;
  std::byte* there = window.at(target, displacement, 0, static_cast<Count>(bytes));
  const Alone alone(window, target);
  const bool same = std::memcmp(there, expected, bytes) == 0;
  std::memcpy(before, there, bytes);
  if (same) std::memcpy(there, desired, bytes);
  return true;
}

}  // namespace ropewalk::preload::onesided
