#include "node/rooms.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "ropewalk/memory.hpp"

namespace ropewalk::node {

// There are two halves, so that nobody waits for others to arrive at a call at which it has not
// arrived itself: the other half was last used by the call before the last one, or earlier.
std::byte* Rooms::take(std::size_t bytes) {
  // A copy of no bytes has an address as well, and one of its own.
  const std::size_t stride =
      (std::max<std::size_t>(bytes, 1) + flag_stride - 1) / flag_stride * flag_stride;
  if (halves_[half_].last_call < slots_.seen()) used_ = 0;  // all have left it, its lines are near
  if (used_ > 0 && used_ + stride > halves_[half_].bytes) {
    const std::uint64_t last = halves_[half_ ^ 1].last_call;
    if (last != 0 && last >= slots_.seen()) slots_.wait_for_arrivals(last + 1);
    half_ ^= 1;
    used_ = 0;
  }
  Half& half = halves_[half_];
  if (used_ == 0 && stride > half.bytes) enlarge(half, stride);
  half.last_call = slots_.calls();
  return half.memory + std::exchange(used_, used_ + stride);
}

// Nobody reads the half any more.
void Rooms::enlarge(Half& half, std::size_t bytes) {
  if (half.memory != nullptr) Arena::process().deallocate(half.memory);
  half = {nullptr, 0, half.last_call};
  bytes = std::max(least_half, std::bit_ceil(bytes));
  half.memory = static_cast<std::byte*>(Arena::process().allocate(bytes, flag_stride));
  half.bytes = bytes;
}

}  // namespace ropewalk::node
