// How much freed memory an arena keeps for a program whose own allocations it serves.
#pragma once

#include <algorithm>
#include <cstddef>

#include "os/mapping.hpp"

namespace ropewalk::memory {

// Freed blocks are kept with their pages up to this sum: what is allocated and freed in a loop, up
// to this size, costs no page faults. libc keeps as much at most: twice its largest mmap threshold,
// 64 MiB, in each of its arenas. Ranks share a node, so it is a small part of the arena's range.
inline std::size_t most_kept(std::size_t reserved) noexcept {
  return std::min(128 * os::mib, reserved / 64);
}

}  // namespace ropewalk::memory
