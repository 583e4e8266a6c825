#include "node/staging_area.hpp"

#include "ropewalk/memory.hpp"

namespace ropewalk::node {

std::byte* StagingArea::reserve(std::size_t bytes) {
  if (bytes <= bytes_) return memory_;
  if (memory_ != nullptr) Arena::process().deallocate(memory_);
  memory_ = nullptr;
  bytes_ = 0;
  memory_ = static_cast<std::byte*>(Arena::process().allocate(bytes, 4096));
  bytes_ = bytes;
  blocks_.own->staging.store(Arena::process().offset(memory_), std::memory_order_relaxed);
  return memory_;
}

}  // namespace ropewalk::node
