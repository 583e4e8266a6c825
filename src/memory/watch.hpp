// How the malloc library learns which of its blocks are communicated: it hangs a BlockWatch on the
// arena, and whoever looks at a buffer in a served call tells it (Arena::note_communicated). Plain
// data, part of the interface between copies of this library (process_arena.hpp).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "memory/arena_range.hpp"

namespace ropewalk::memory {

// These are statistics of the blocks of the malloc library, from its threshold on. Relaxed is
// enough, as nothing depends on them.
struct WatchCounts {
  std::atomic<std::uint64_t> bytes{0};         // handed out, wherever they come from
  std::atomic<std::uint64_t> communicated{0};  // of these, in units of the arena
  std::atomic<std::uint64_t> libc_blocks{0};   // given to libc by what was learned
  std::atomic<std::uint64_t> libc_bytes{0};
  std::atomic<std::uint64_t> learned{0};    // places in the program that were given to libc
  std::atomic<std::uint64_t> unlearned{0};  // and taken back
};

struct BlockWatch {
  // The arena is watched in units of half the smallest block that is, so each such block has the
  // first byte of one unit or more for itself.
  static constexpr std::size_t unit = std::size_t{64} << 10;
  // Smaller pieces are copied beside the slots, wherever they lie.
  static constexpr std::size_t least_inside = std::size_t{4} << 10;
  static constexpr std::size_t least_outside = std::size_t{16} << 10;

  // There is one entry for each unit, and one more. It is not 0 while no communication of that part
  // of the block has been seen. Relaxed is enough: nobody reads memory because of them.
  std::atomic<std::uint16_t>* unseen = nullptr;
  // The first is called for a buffer in the arena with an unseen unit, the second for a buffer
  // outside of it.
  void (*seen_inside)(const void* address, std::size_t bytes) = nullptr;
  void (*seen_outside)(const void* address, std::size_t bytes) = nullptr;
  WatchCounts counts;

  // The units to ask about a buffer at this offset, first and last. One without the first byte of a
  // unit lies in a block that has that of its unit or of the next.
  static std::size_t first_unit(std::size_t offset, std::size_t bytes) noexcept {
    return bytes < unit ? offset / unit : (offset + unit - 1) / unit;
  }
  static std::size_t last_unit(std::size_t offset, std::size_t bytes) noexcept {
    return bytes < unit ? offset / unit + 1 : (offset + bytes - 1) / unit;
  }

  // It costs two loads for a buffer that was communicated before.
  void note_inside(const ArenaRange& range, const void* address, std::size_t bytes) const noexcept {
    const auto offset =
        static_cast<std::size_t>(static_cast<const std::byte*>(address) - range.base);
    const unsigned first = unseen[first_unit(offset, bytes)].load(std::memory_order_relaxed);
    const unsigned last = unseen[last_unit(offset, bytes)].load(std::memory_order_relaxed);
    if ((first | last) != 0) [[unlikely]] {
      seen_inside(address, bytes);
    }
  }
};

}  // namespace ropewalk::memory
