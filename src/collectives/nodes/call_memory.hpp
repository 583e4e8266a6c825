#pragma once

#include <cstddef>
#include <memory>

#include "ropewalk/detail/unwinding.hpp"

namespace ropewalk::collectives::nodes {

// Memory of one call, for messages. Where an exception ends the call, MPI may still read and write
// it: then it is never freed.
class CallMemory {
 public:
  explicit CallMemory(std::size_t bytes)
      : memory_(std::make_unique_for_overwrite<std::byte[]>(bytes)) {}
  ~CallMemory() {
    if (unwinding_) (void)memory_.release();
  }
  CallMemory(const CallMemory&) = delete;
  CallMemory& operator=(const CallMemory&) = delete;
  std::byte* data() const noexcept { return memory_.get(); }

 private:
  detail::Unwinding unwinding_;
  std::unique_ptr<std::byte[]> memory_;
};

}  // namespace ropewalk::collectives::nodes
