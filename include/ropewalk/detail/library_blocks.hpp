// Large blocks of one loaded library, such as the one from which PyTorch has its tensors, in the
// arena of the process.
#pragma once

#include <cstddef>
#include <string>

namespace ropewalk::detail {

// From now on, blocks of `least_bytes` and more that the library allocates with posix_memalign come
// from the arena, or from where they came before if it is full; with SIZE_MAX none do. Returns what
// held before, at first SIZE_MAX. The library may free blocks at any time, from any thread, in a
// forked child, and whatever holds by then.
//
// `library` is the name of its file, and the same in all calls of a process: one library is served.
// Throws Error(unsupported) where it cannot be, Error(memory) where there is no arena. Does nothing
// where the malloc library serves the whole program.
std::size_t place_library_blocks(const std::string& library, std::size_t least_bytes);

// Whether the library has asked for a block that was to come from the arena. One that does not ask
// has memory of its own.
bool library_has_asked() noexcept;

// Whether the malloc library serves the whole program.
bool malloc_library_serves() noexcept;

}  // namespace ropewalk::detail
