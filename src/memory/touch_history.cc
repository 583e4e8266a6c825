#include "memory/touch_history.hpp"

#include <sys/mman.h>

#include <bit>

#include "os/mapping.hpp"

namespace ropewalk::memory {
namespace {

bool is_present(const std::byte* address) noexcept {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  auto* page = const_cast<std::byte*>(address) - at % os::page_bytes();
  unsigned char present = 0;
  return mincore(page, 1, &present) == 0 && (present & 1) != 0;
}

}  // namespace

std::size_t TouchHistory::index(std::size_t bytes) noexcept {
  const auto octave = static_cast<std::size_t>(std::bit_width(bytes)) - 1;
  return 4 * octave + (bytes >> (octave - 2) & 3);
}

void TouchHistory::handed_out(Extent block) noexcept {
  if (block.bytes >= least) sizes_[index(block.bytes)].last = block;
}

// The pages are evenly spread, with the first and the last page among them.
void TouchHistory::look_at(const std::byte* base, Extent block) noexcept {
  constexpr std::size_t samples = 8;
  if (block.bytes < least) return;
  Size& size = sizes_[index(block.bytes)];
  if (size.last.offset != block.offset || size.last.bytes == 0) return;
  size.last.bytes = 0;
  bool whole = true;
  for (std::size_t i = 0; whole && i < samples; ++i) {
    whole = is_present(base + block.offset + (block.bytes - 1) / (samples - 1) * i);
  }
  if (!whole) size.whole = 0;
  if (whole && size.whole < evidence) ++size.whole;
}

Extent TouchHistory::last(std::size_t bytes) const noexcept {
  return bytes < least ? Extent{0, 0} : sizes_[index(bytes)].last;
}

bool TouchHistory::expects_whole(std::size_t bytes) const noexcept {
  return bytes >= least && sizes_[index(bytes)].whole >= evidence;
}

}  // namespace ropewalk::memory
