// The staging areas of a team's ranks: memory in each arena through which data of any length goes,
// chunk by chunk.
#pragma once

#include <cstddef>
#include <span>

#include "node/control.hpp"

namespace ropewalk::node {

class StagingArea {
 public:
  // `bases` says where each rank's arena is mapped here.
  StagingArea(const ControlBlocks& blocks, std::span<std::byte* const> bases) noexcept
      : blocks_(blocks), bases_(bases) {}

  // Returns this rank's area, at least `bytes` long. The next arrival shows it to the others. When
  // it grows, the others have left the last call that used it. May throw Error(memory).
  std::byte* reserve(std::size_t bytes);
  // Returns another rank's area, after its arrival at this call.
  std::byte* of(int rank) const noexcept {
    return bases_[rank] + blocks_.of[rank]->staging.load(std::memory_order_relaxed);
  }
  // What the arena has given for this rank's area, null for none. Others may read it for as long as
  // they have the team (reclamation.hpp).
  std::byte* memory() const noexcept { return memory_; }

 private:
  ControlBlocks blocks_;
  std::span<std::byte* const> bases_;
  std::byte* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace ropewalk::node
