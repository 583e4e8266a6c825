// Blocks of an arena for malloc, see process_arena.hpp: they get their pages by first touch of the
// owner, and may change their size in place.
#pragma once

#include <cstddef>
#include <optional>

#include "memory/arena_state.hpp"

namespace ropewalk::memory {

class MallocBlocks {
 public:
  explicit MallocBlocks(ArenaState& arena);

  void* allocate(std::size_t bytes, std::size_t alignment, bool& fresh) noexcept;
  void* allocate_to_grow(std::size_t bytes) noexcept;
  bool resize(void* address, std::size_t bytes) noexcept;
  void clear(void* address, std::size_t bytes) noexcept;
  int discard(void* address, std::size_t bytes, bool locked_too) noexcept;
  void bound_cache(std::size_t bytes) noexcept;

 private:
  // With the lock held.
  bool leaves_room(std::size_t more) const noexcept;
  std::optional<Extent> find(std::size_t bytes, std::size_t alignment, bool& whole, bool& fresh);
  std::optional<Extent> find_to_grow(std::size_t bytes);
  void* use(std::optional<Extent> block);
  bool widen(Extent block, std::size_t bytes);

  ArenaState& arena_;
  ArenaCore& core_;
  const bool one_node_;  // of the machine: it does not matter which thread touches a page first
};

}  // namespace ropewalk::memory
