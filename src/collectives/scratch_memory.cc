#include "collectives/scratch_memory.hpp"

#include <exception>

#include "ropewalk/memory.hpp"

namespace ropewalk::collectives {
namespace {

// This block is kept for copies of small private buffers, and for the chunks of larger ones.
constexpr std::size_t kept_bytes = std::size_t{256} << 10;

}  // namespace

ScratchMemory::ScratchMemory() { blocks_.reserve(4); }

ScratchMemory::~ScratchMemory() {
  if (kept_ != nullptr) Arena::process().deallocate(kept_);
}

std::byte* ScratchMemory::take(std::size_t bytes) {
  if (bytes <= kept_bytes && !kept_in_use_) {
    if (kept_ == nullptr) kept_ = Arena::process().allocate(kept_bytes, 4096);
    kept_in_use_ = true;
    return static_cast<std::byte*>(kept_);
  }
  blocks_.reserve(blocks_.size() + 1);  // nothing fails behind the allocation
  void* memory = Arena::process().allocate(bytes);
  blocks_.push_back(memory);
  return static_cast<std::byte*>(memory);
}

std::byte* ScratchMemory::try_take(std::size_t bytes) noexcept {
  try {
    return take(bytes);
  } catch (const std::exception&) {
    return nullptr;
  }
}

void ScratchMemory::release() noexcept {
  for (void* memory : blocks_) Arena::process().deallocate(memory);
  blocks_.clear();
  kept_in_use_ = false;
}

}  // namespace ropewalk::collectives
