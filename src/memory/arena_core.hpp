// What an arena consists of, and the one lock around it, which is held also while pages are made:
// blocks share 2 MiB pages with their neighbours, and a second thread's pages would only wait for
// the same memory bandwidth.
//
// Its own bookkeeping comes from malloc, which may be ours: while a thread is inside, its
// allocations are to come from elsewhere (busy).
#pragma once

#include <algorithm>
#include <cstddef>
#include <mutex>

#include "memory/arena_pages.hpp"
#include "memory/arena_space.hpp"
#include "memory/live_blocks.hpp"
#include "memory/touch_history.hpp"
#include "os/mapping.hpp"
#include "ropewalk/memory.hpp"

namespace ropewalk::memory {

// This thread is inside an arena, or makes one, as long as an object of this type lives.
class Inside {
 public:
  Inside() noexcept;
  ~Inside();
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  static bool now() noexcept;
  // For what begins and ends in different functions, around a fork.
  static void set(bool inside) noexcept;

 private:
  bool before_;
};

struct ArenaCore {
  ArenaCore(const MemoryOptions& options, bool probe_later);
  ArenaCore(const ArenaCore&) = delete;
  ArenaCore& operator=(const ArenaCore&) = delete;

  // This process was cloned without the fork handlers: the memory belongs to its parent and is not
  // mapped here.
  bool orphaned() const noexcept { return life && *life.data() == std::byte{0}; }
  std::size_t offset(const void* address) const noexcept {
    return static_cast<std::size_t>(static_cast<const std::byte*>(address) -
                                    segment().range().base);
  }
  Segment& segment() const noexcept { return pages.segment(); }

  // These are called with the lock held.
  void* use(Extent block);                      // it is live now
  Extent forget(const void* address) noexcept;  // it no longer is; bytes: 0 where it was not

  mutable std::mutex mutex;
  ArenaPages pages;
  ArenaSpace space;
  LiveBlocks live;
  TouchHistory touches;
  ArenaStatistics counters;  // those that nobody else keeps
  os::Mapping life;          // one byte that is 1, and 0 in a child cloned past the fork handlers
};

// Holds the lock, inside.
class Hold {
 public:
  explicit Hold(const ArenaCore& core) : lock_(core.mutex) {}

 private:
  const Inside inside_;
  const std::lock_guard<std::mutex> lock_;
};

// Rounds small blocks to lines, larger ones to pages, so that no two blocks share a page that is
// registered or mapped by a peer, at a cost of a sixteenth at most.
constexpr std::size_t round_block(std::size_t bytes) {
  constexpr std::size_t paged = 64 * os::kib;
  return os::round_up(std::max<std::size_t>(bytes, 1), bytes < paged ? line : 4096);
}

}  // namespace ropewalk::memory
