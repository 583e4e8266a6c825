// Where the flags of a halo come from and go to.
#include "halo/flags.hpp"

#include <new>
#include <utility>

#include "ropewalk/memory.hpp"

namespace ropewalk::halo {

FlagBlock::FlagBlock(int directions) {
  const auto count = 1 + static_cast<std::size_t>(directions);
  void* memory = Arena::process().allocate(count * sizeof(FlagLine), alignof(FlagLine));
  lines_ = static_cast<FlagLine*>(memory);
  for (std::size_t i = 0; i < count; ++i) new (lines_ + i) FlagLine;
}

FlagBlock::FlagBlock(FlagBlock&& other) noexcept : lines_(std::exchange(other.lines_, nullptr)) {}

FlagBlock& FlagBlock::operator=(FlagBlock&& other) noexcept {
  std::swap(lines_, other.lines_);
  return *this;
}

FlagBlock::~FlagBlock() {
  if (lines_ != nullptr) Arena::process().deallocate(lines_);
}

std::size_t FlagBlock::offset() const noexcept { return Arena::process().offset(lines_); }

}  // namespace ropewalk::halo
