// What the environment says about memory: ROPEWALK_PAGES, ROPEWALK_MEMORY, ROPEWALK_ARENA_BYTES,
// ROPEWALK_FORK. A malformed value is Error(argument) naming the variable; it is never ignored.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "ropewalk/memory.hpp"

namespace ropewalk::memory {

// Reads ROPEWALK_ARENA_BYTES; the result is none for `auto`.
std::optional<std::size_t> environment_arena_bytes();

// Reads ROPEWALK_PAGES, of which the default is prefer, and ROPEWALK_MEMORY. Throws Error as
// NumaPlacement does where this machine has no such memory.
MemoryOptions environment_options();

// What a child of fork() gets of our shared memory: a private copy, or nothing at all.
enum class ForkPolicy { copy, refuse };
ForkPolicy environment_fork_policy();  // ROPEWALK_FORK; the default is copy

}  // namespace ropewalk::memory
