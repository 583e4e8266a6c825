// What stands behind an Arena: memory of this copy of the library, or of another copy in the same
// process (process_arena.hpp).
#pragma once

#include <cstddef>
#include <string>

#include "memory/arena_range.hpp"
#include "ropewalk/memory.hpp"

namespace ropewalk::memory {

class ArenaBackend {
 public:
  ArenaBackend() = default;
  ArenaBackend(const ArenaBackend&) = delete;
  ArenaBackend& operator=(const ArenaBackend&) = delete;
  virtual ~ArenaBackend() = default;

  virtual const ArenaRange& range() const noexcept = 0;
  virtual void* allocate(std::size_t bytes, std::size_t alignment) = 0;
  virtual void deallocate(void* address) noexcept = 0;
  virtual std::size_t usable_bytes(const void* address) const = 0;
  virtual void trim() noexcept = 0;
  // The slow half of Arena::make_huge: the range lies in the arena and is not settled.
  virtual void settle(const void* address, std::size_t bytes) noexcept = 0;
  virtual int descriptor() const noexcept = 0;
  virtual PageSource source() noexcept = 0;
  virtual ArenaStatistics statistics() const = 0;
  virtual std::string downgrade() = 0;
};

}  // namespace ropewalk::memory
