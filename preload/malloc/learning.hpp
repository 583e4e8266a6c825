// Learned placement: which allocations come from the arena. The first touch of a block costs more
// in the arena than in libc, and that pays only when the block is communicated. So the first blocks
// of each place in the program come from the arena. A place whose blocks were freed without having
// been communicated gets memory of libc from then on. A place one of whose blocks is communicated,
// in the arena or in libc, gets the arena for good. Blocks never move, and no place changes more
// than twice.
//
// A place is the caller's return address, the depth of its stack (behind C++'s operator new and
// inside libraries the return address alone says little), and the size's power of two.
//
// There are no locks, no allocations and no system calls. Wrong guesses cost time, never
// correctness.
#pragma once

#include <cstddef>
#include <cstdint>

#include "memory/process_arena.hpp"

namespace ropewalk::malloc_library::learning {

// What identifies an allocation.
struct Call {
  std::size_t bytes;
  const void* caller;
  bool zeroed;
};

// The entry of a place in the table; no_place for blocks that are too small to be followed.
using Place = std::uint16_t;
inline constexpr Place no_place = 0;

// Before the first allocation of the arena. Without `learns`, only the counters are kept.
void begin(const memory::ProcessArena& arena, bool learns) noexcept;

// `depth`: an address on the stack, the same distance from the caller's in every call.
Place place_of(const Call& call, const void* depth) noexcept;
bool wants_libc(Place place, const Call& call) noexcept;

// `fresh`: its pages are new, so the program pays for the first touch.
void placed_in_arena(Place place, const Call& call, const void* block, bool fresh) noexcept;
void placed_in_libc(Place place, const void* block, std::size_t bytes) noexcept;
// Called when libc has freed a block, and when it has resized one, which now lies at `to` (null
// where libc could not). They ignore blocks that the learning has not placed in libc.
void freed_in_libc(const void* block) noexcept;
void moved_in_libc(const void* from, const void* to, std::size_t bytes) noexcept;

// Called before or after a block of the arena is freed, or becomes `bytes` long.
void freed(const void* block, std::size_t bytes) noexcept;
void shrinks(const void* block, std::size_t old, std::size_t bytes) noexcept;
void grew(const void* block, std::size_t old, std::size_t bytes) noexcept;

}  // namespace ropewalk::malloc_library::learning
