// Shared by the files of ArenaState: the lock as its functions hold it, and the sizes of blocks.
#pragma once

#include <algorithm>
#include <mutex>

#include "memory/arena_state.hpp"

namespace ropewalk::memory {

class ArenaState::Hold {
 public:
  explicit Hold(const ArenaState& state) : lock_(state.mutex_) {}

 private:
  const Inside inside_;
  const std::lock_guard<std::mutex> lock_;
};

constexpr std::size_t line = 128;  // two cache lines: the pair that x86 fetches together

// Small blocks in lines, larger ones in pages, so that no two blocks share a page that is
// registered or mapped by a peer, at a cost of a sixteenth at most.
constexpr std::size_t round_block(std::size_t bytes) {
  constexpr std::size_t paged = 64 * os::kib;
  return os::round_up(std::max<std::size_t>(bytes, 1), bytes < paged ? line : 4096);
}

}  // namespace ropewalk::memory
