#include "channel/own_memory.hpp"

#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace ropewalk::channel {
namespace {

constexpr std::uintptr_t page_bytes = 4096;

// Blocks of a call may leave a gap without memory at the beginning of a buffer, which nobody reads:
// that is no refusal. mincore() knows what is mapped, a driver's memory as well.
bool has_memory(std::uintptr_t address) noexcept {
  unsigned char resident = 0;
  void* page = reinterpret_cast<void*>(address / page_bytes * page_bytes);
  return mincore(page, 1, &resident) == 0;
}

}  // namespace

bool OwnMemory::is_known(const Range& range) const noexcept {
  return std::any_of(known_.begin(), known_.end(), [&](const Range& known) {
    return known.begin <= range.begin && range.end <= known.end;
  });
}

// Ranges grow together: buffers on a stack or heap begin a little lower or higher at each call.
void OwnMemory::remember(const Range& range) noexcept {
  for (Range& known : known_) {
    if (range.begin > known.end || known.begin > range.end) continue;
    known = {std::min(known.begin, range.begin), std::max(known.end, range.end)};
    return;
  }
  known_[turn_++ % known_.size()] = range;
}

bool OwnMemory::is_copied_by_kernel(const void* data, std::size_t bytes) noexcept {
  if (bytes == 0) return true;
  const auto begin = reinterpret_cast<std::uintptr_t>(data);
  const Range range{begin, begin + bytes};
  if (is_known(range)) return true;
  std::array<char, 2> copy{};
  const std::array<std::uintptr_t, 2> ends{begin, begin + bytes - 1};
  iovec here{copy.data(), copy.size()};
  std::array<iovec, 2> there{};
  for (std::size_t i = 0; i < 2; ++i) there[i] = {reinterpret_cast<void*>(ends[i]), 1};
  if (process_vm_readv(getpid(), &here, 1, there.data(), there.size(), 0) == 2) {
    remember(range);
    return true;
  }
  for (iovec& byte : there) {
    const bool refused = process_vm_readv(getpid(), &here, 1, &byte, 1, 0) != 1;
    if (refused && has_memory(reinterpret_cast<std::uintptr_t>(byte.iov_base))) return false;
  }
  return true;
}

}  // namespace ropewalk::channel
