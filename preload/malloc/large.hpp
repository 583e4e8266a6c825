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

// Null where it is not ours or cannot be had: ask the next allocator.
void* large_allocate(std::size_t bytes, std::size_t alignment) noexcept;
void* large_callocate(std::size_t bytes) noexcept;

// The address is in the arena.
void arena_free(void* address) noexcept;
std::size_t arena_block_bytes(const void* address) noexcept;
void* arena_reallocate(void* address, std::size_t bytes) noexcept;
bool arena_trim() noexcept;

// The address is not, but the new size is large.
void* large_reallocate(void* address, std::size_t bytes) noexcept;

// "on", or "off: " and why.
const char* state() noexcept;

}  // namespace ropewalk::malloc_library
