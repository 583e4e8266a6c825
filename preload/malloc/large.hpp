// What is not libc's: allocations of the threshold and above, and what lies in the arena.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

// Our own malloc, whatever the name means to the rest of the process.
extern "C" __attribute__((visibility("hidden"))) void* ropewalk_own_malloc(std::size_t);

namespace ropewalk::malloc_library {

// All that the hot path reads. Written once or twice in the life of a process: relaxed is enough,
// because whoever frees an address in the arena got it from an allocation that came after.
struct alignas(64) Front {
  std::atomic<std::size_t> threshold{0};  // 0 until decided, SIZE_MAX for never
  std::atomic<std::uintptr_t> base{0};    // of the arena
  std::atomic<std::size_t> reserved{0};   // 0 until there is one
  // Where libc's blocks lie that learning is interested in; empty in programs that it leaves alone.
  std::atomic<std::uintptr_t> given{0};
  std::atomic<std::size_t> given_span{0};
};
extern Front front;

inline bool is_large(std::size_t bytes) noexcept {
  return __builtin_expect(bytes >= front.threshold.load(std::memory_order_relaxed), 0);
}
inline bool in_arena(const void* address) noexcept {
  return __builtin_expect(
      reinterpret_cast<std::uintptr_t>(address) - front.base.load(std::memory_order_relaxed) <
          front.reserved.load(std::memory_order_relaxed),
      0);
}

inline bool may_be_given(const void* address) noexcept {
  return __builtin_expect(
      reinterpret_cast<std::uintptr_t>(address) - front.given.load(std::memory_order_relaxed) <
          front.given_span.load(std::memory_order_relaxed),
      0);
}

// From the arena, or from libc, where it was learned that this place in the program does not
// communicate what it allocates. `caller`: a return address in it. Returns null where it is not
// ours to decide, or cannot be had: ask the next allocator.
void* large_allocate(std::size_t bytes, std::size_t alignment, const void* caller) noexcept;
void* large_callocate(std::size_t bytes, const void* caller) noexcept;

// The address is in the arena.
void arena_free(void* address) noexcept;
std::size_t arena_block_bytes(const void* address) noexcept;
void* arena_reallocate(void* address, std::size_t bytes, const void* caller) noexcept;
bool arena_trim() noexcept;
// An errno: the pages read as zero from now on.
int discard_in_arena(void* address, std::size_t bytes, bool locked_too) noexcept;
// What the program has done to pages of the arena that their next owner must not meet; bits.
enum Trace : unsigned { taken_rights = 1, guards = 2, keys = 4, locks = 8, left_out_of_dumps = 16 };
// All that was done once: blocks that are freed are cleaned of it from then on.
extern std::atomic<unsigned> traces;
void note_protection(int protection) noexcept;
void note_key(int protection, int key) noexcept;
void note_lock() noexcept;
void remove_traces(void* block, std::size_t bytes) noexcept;
// Called for what is freed.
inline void clean(void* block, std::size_t bytes) noexcept {
  if (traces.load(std::memory_order_relaxed) != 0) remove_traces(block, bytes);
}
// Does what madvise does, for memory of the arena.
int arena_advise(void* address, std::size_t bytes, int advice) noexcept;

// The address may be that of a block that libc was given.
void given_free(void* address) noexcept;
void* given_reallocate(void* address, std::size_t bytes) noexcept;

// The address is not, but the new size is large.
void* large_reallocate(void* address, std::size_t bytes, const void* caller) noexcept;

// "on", or "off: " and why.
const char* state() noexcept;

}  // namespace ropewalk::malloc_library
