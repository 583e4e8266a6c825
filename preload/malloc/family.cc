// This file replaces the allocation functions of libc. Below the threshold, and for addresses
// outside of the arena, each is a compare and a jump to the next allocator, without a lock or a
// thread-local variable. The next allocator decides what is an error, and sets errno.
//
// The operators of C++ are not replaced: those of every C++ library call these functions, a
// statically linked one's too.
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "large.hpp"
#include "next.hpp"
#include "ropewalk/export.hpp"

namespace {

using ropewalk::malloc_library::in_arena;
using ropewalk::malloc_library::is_large;
using ropewalk::malloc_library::may_be_given;
using ropewalk::malloc_library::next;
namespace library = ropewalk::malloc_library;

constexpr std::size_t page = 4096;
constexpr std::size_t usual = 16;  // alignment that malloc promises

// This tells where the program called; it is read on the way to large blocks only.
#define RW_CALLER __builtin_return_address(0)

inline void* reallocate(void* address, std::size_t bytes, const void* caller) {
  if (in_arena(address)) return library::arena_reallocate(address, bytes, caller);
  if (is_large(bytes)) return library::large_reallocate(address, bytes, caller);
  if (may_be_given(address)) return library::given_reallocate(address, bytes);
  return next.realloc(address, bytes);
}

constexpr bool is_alignment(std::size_t value) { return value != 0 && (value & (value - 1)) == 0; }

}  // namespace

extern "C" {

RW_EXPORT void* malloc(std::size_t bytes) {
  if (is_large(bytes)) {
    if (void* found = library::large_allocate(bytes, usual, RW_CALLER)) return found;
  }
  return next.malloc(bytes);
}

#if __has_attribute(copy)  // Clang has none, nor GCC's warning of what an alias lacks
__attribute__((alias("malloc"), copy(malloc))) void* ropewalk_own_malloc(std::size_t);
#else
__attribute__((alias("malloc"))) void* ropewalk_own_malloc(std::size_t);
#endif

RW_EXPORT void free(void* address) {
  if (in_arena(address)) return library::arena_free(address);
  if (may_be_given(address)) return library::given_free(address);
  return next.free(address);
}

RW_EXPORT void* calloc(std::size_t count, std::size_t bytes) {
  std::size_t sum = 0;
  if (!__builtin_mul_overflow(count, bytes, &sum) && is_large(sum)) {
    if (void* found = library::large_callocate(sum, RW_CALLER)) return found;
  }
  return next.calloc(count, bytes);
}

RW_EXPORT void* realloc(void* address, std::size_t bytes) {
  return reallocate(address, bytes, RW_CALLER);
}

RW_EXPORT void* reallocarray(void* address, std::size_t count, std::size_t bytes) {
  std::size_t sum = 0;
  if (__builtin_mul_overflow(count, bytes, &sum)) {
    errno = ENOMEM;
    return nullptr;
  }
  return reallocate(address, sum, RW_CALLER);
}

RW_EXPORT void* memalign(std::size_t alignment, std::size_t bytes) {
  if (is_large(bytes) && is_alignment(alignment)) {
    if (void* found = library::large_allocate(bytes, alignment, RW_CALLER)) return found;
  }
  return next.memalign(alignment, bytes);
}

RW_EXPORT void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  if (is_large(bytes) && is_alignment(alignment)) {
    if (void* found = library::large_allocate(bytes, alignment, RW_CALLER)) return found;
  }
  return next.aligned_alloc(alignment, bytes);
}

RW_EXPORT int posix_memalign(void** out, std::size_t alignment, std::size_t bytes) {
  if (is_large(bytes) && is_alignment(alignment) && alignment % sizeof(void*) == 0) {
    if (void* found = library::large_allocate(bytes, alignment, RW_CALLER)) {
      *out = found;
      return 0;
    }
  }
  return next.posix_memalign(out, alignment, bytes);
}

RW_EXPORT void* valloc(std::size_t bytes) {
  if (is_large(bytes)) {
    if (void* found = library::large_allocate(bytes, page, RW_CALLER)) return found;
  }
  return next.valloc(bytes);
}

// pvalloc gives whole pages.
RW_EXPORT void* pvalloc(std::size_t bytes) {
  if (is_large(bytes) && bytes <= SIZE_MAX - page) {
    const std::size_t whole = (bytes + page - 1) & ~(page - 1);
    if (void* found = library::large_allocate(whole, page, RW_CALLER)) return found;
  }
  return next.pvalloc(bytes);
}

RW_EXPORT std::size_t malloc_usable_size(void* address) {
  if (in_arena(address)) return library::arena_block_bytes(address);
  return next.malloc_usable_size(address);
}

RW_EXPORT int malloc_trim(std::size_t pad) {
  const bool ours = library::arena_trim();
  return next.malloc_trim(pad) != 0 || ours ? 1 : 0;
}

// These are of C23; a libc that has them would not know addresses of ours.
RW_EXPORT void free_sized(void* address, std::size_t) { free(address); }
RW_EXPORT void free_aligned_sized(void* address, std::size_t, std::size_t) { free(address); }

RW_EXPORT const char* ropewalk_malloc_state() { return library::state(); }
}
