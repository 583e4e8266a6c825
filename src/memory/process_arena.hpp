// There is one arena in each process. libropewalk-malloc.so, libropewalk-mpi.so, libropewalk.so and
// the Python module each hold a copy of this library; the copy that the dynamic linker finds first
// serves all. Copies use one C function and a table of functions, so they may come from different
// compilers. A change of the table, of ArenaRange or of ArenaStatistics needs a new name for the
// function.
#pragma once

#include <cstddef>
#include <memory>

#include "memory/arena_backend.hpp"
#include "ropewalk/export.hpp"
#include "ropewalk/memory.hpp"

namespace ropewalk::memory {

// The text of an error goes here; it always ends with a zero.
struct ArenaFailure {
  ErrorCode code = ErrorCode::memory;
  char text[1024] = {};
};

// No function throws. All are thread-safe, as Arena is.
struct ProcessArena {
  const ArenaRange* range;
  bool (*allocate)(std::size_t bytes, std::size_t alignment, void** out, ArenaFailure*);
  void (*deallocate)(void* address);
  bool (*usable_bytes)(const void* address, std::size_t* out, ArenaFailure*);
  void (*trim)();
  void (*settle)(const void* address, std::size_t bytes);
  int (*descriptor)();
  PageSource (*source)();
  bool (*statistics)(ArenaStatistics* out, ArenaFailure*);
  // Writes up to `room` bytes with the ending zero, returns the length of the whole text.
  std::size_t (*downgrade)(char* text, std::size_t room);

  // This serves the malloc library. Blocks get pages by first touch, and lie at a multiple of
  // `alignment`, a power of two; the result is null where they cannot be had, which is counted.
  // `fresh` means that the program is going to pay for the first touch of small pages.
  void* (*allocate_untouched)(std::size_t bytes, std::size_t alignment, bool* fresh);
  // Bytes of the live block that begins there; 0 for none.
  std::size_t (*block_bytes)(const void* address);
  // Makes the live block larger or smaller where it is, if its surroundings allow.
  bool (*resize)(void* address, std::size_t bytes);
  // Does the same as allocate_untouched, with free addresses behind the block, so that it can grow
  // in place.
  void* (*allocate_to_grow)(std::size_t bytes);
  // Zeroes those parts of the live block that may not read as zero.
  void (*clear)(void* address, std::size_t bytes);
  // Freed blocks are kept up to this sum, from now on.
  void (*bound_cache)(std::size_t bytes);
  // This thread is in the arena: what it allocates now must come from elsewhere.
  bool (*busy)();
  // This process was cloned without the fork handlers: the arena belongs to its parent and is not
  // mapped here.
  bool (*orphaned)();
  // Pages of live blocks, whole ones, read as zero afterwards; returns an errno. Takes no lock.
  int (*discard)(void* address, std::size_t bytes, bool locked_too);
  // From now on this learns what is communicated. It must never be destroyed.
  void (*watch)(const BlockWatch*);
};

using ProcessArenaFunction = const ProcessArena*(ArenaFailure*);
constexpr const char* process_arena_symbol = "ropewalk_process_arena_v2";

// Returns the function of the first copy, as found by the dynamic linker; our own where it finds
// none.
ProcessArenaFunction* find_process_arena() noexcept;

// Throws what the copy that owns the function threw when it made its arena.
std::unique_ptr<ArenaBackend> open_process_arena(ProcessArenaFunction*);

}  // namespace ropewalk::memory

// The arena of this copy, made at first use with options from the environment; null with the reason
// where it cannot be had, null without one while this very thread is making it.
extern "C" RW_EXPORT const ropewalk::memory::ProcessArena* ropewalk_process_arena_v2(
    ropewalk::memory::ArenaFailure*);
