// Which allocations are worth the arena: learned placement. A block of the arena costs more to
// touch first than one of libc, and repays it only when it is communicated. So the first blocks of
// each place in the program come from the arena; a place whose blocks were freed uncommunicated
// gets libc's memory from then on; one whose block is seen communicated, in the arena or in libc,
// has the arena for good. Nothing ever moves, and no place changes its side more than twice.
//
// A place is the caller's return address, the depth of its stack (behind C++'s operator new and
// inside libraries the return address alone says little), and the size's power of two.
//
// No locks, no allocation, no system call; wrong guesses cost time, never correctness.
#pragma once

#include <cstddef>
#include <cstdint>

#include "memory/process_arena.hpp"

namespace ropewalk::malloc_library::learning {

// What an allocation is known by.
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

// `fresh`: the program pays for its first touch.
void placed_in_arena(Place place, const Call& call, const void* block, bool fresh) noexcept;
void placed_in_libc(Place place, const void* block, std::size_t bytes) noexcept;
// It is freed; libc made another size of it, at `to`, which may be null where it could not. Nothing
// for blocks that were not placed there.
void freed_in_libc(const void* block) noexcept;
void moved_in_libc(const void* from, const void* to, std::size_t bytes) noexcept;

// A block of the arena is about to go, or to become `bytes` long, or has done so.
void freed(const void* block, std::size_t bytes) noexcept;
void shrinks(const void* block, std::size_t old, std::size_t bytes) noexcept;
void grew(const void* block, std::size_t old, std::size_t bytes) noexcept;

}  // namespace ropewalk::malloc_library::learning
