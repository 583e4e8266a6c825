// The allocator behind us, to which everything goes that is not ours: libc's, or one that was
// preloaded or linked after us. Found at the first call of each process.
#pragma once

#include <cstddef>

namespace ropewalk::malloc_library {

// Until they are found, the entries find all and call again.
struct alignas(64) NextAllocator {
  void* (*malloc)(std::size_t);
  void* (*calloc)(std::size_t, std::size_t);
  void* (*realloc)(void*, std::size_t);
  void (*free)(void*);
  void* (*memalign)(std::size_t, std::size_t);
  int (*posix_memalign)(void**, std::size_t, std::size_t);
  void* (*aligned_alloc)(std::size_t, std::size_t);
  void* (*valloc)(std::size_t);
  void* (*pvalloc)(std::size_t);
  std::size_t (*malloc_usable_size)(void*);
  int (*malloc_trim)(std::size_t);
  int (*madvise)(void*, std::size_t, int);
  int (*mprotect)(void*, std::size_t, int);
  int (*pkey_mprotect)(void*, std::size_t, int, int);
  int (*mlock)(const void*, std::size_t);
  int (*mlock2)(const void*, std::size_t, unsigned);
};

// Hidden, so that the hot path reads it with one instruction.
extern NextAllocator next;

// Returns false while the search is under way in this very thread.
bool find_next() noexcept;

}  // namespace ropewalk::malloc_library
