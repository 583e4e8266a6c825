// What the environment says about memory: ROPEWALK_PAGES, ROPEWALK_ARENA_BYTES, ROPEWALK_FORK,
// ROPEWALK_MALLOC_THRESHOLD. A malformed value is Error(argument) naming the variable; it is never
// ignored.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "ropewalk/memory.hpp"

namespace ropewalk::memory {

// "64M", "2GiB", "4096": binary suffixes K M G T, each also with "iB" or "B".
std::size_t parse_bytes(const std::string& argument, const std::string& text);

// ROPEWALK_ARENA_BYTES, if set; Error(argument) for zero.
std::optional<std::size_t> environment_arena_bytes();

// ROPEWALK_PAGES; the default is prefer.
MemoryOptions environment_options();

// ROPEWALK_MALLOC_THRESHOLD: what malloc takes from the arena begins with this size; SIZE_MAX for
// "off" and 0. At least a page.
constexpr std::size_t default_malloc_threshold = std::size_t{128} << 10;
std::size_t environment_malloc_threshold();

// What a child of fork() gets of our shared memory: a private copy, or nothing at all.
enum class ForkPolicy { copy, refuse };
ForkPolicy environment_fork_policy();  // ROPEWALK_FORK; the default is copy

}  // namespace ropewalk::memory
