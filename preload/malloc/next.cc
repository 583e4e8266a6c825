#include "next.hpp"

#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "bootstrap.hpp"

namespace ropewalk::malloc_library {
namespace {

bool searching = false;  // at the first allocation of the process there is one thread

// ---- until the next allocator is known ----------------------------------------------------------

void* first_malloc(std::size_t bytes) {
  return find_next() ? next.malloc(bytes) : bootstrap_allocate(bytes, 16);
}
void* first_calloc(std::size_t count, std::size_t bytes) {
  if (find_next()) return next.calloc(count, bytes);
  std::size_t sum = 0;
  if (__builtin_mul_overflow(count, bytes, &sum)) return nullptr;
  return bootstrap_allocate(sum, 16);  // zero, as all that is given out once
}
void* first_realloc(void* address, std::size_t bytes) {
  if (find_next()) return next.realloc(address, bytes);
  void* moved = bootstrap_allocate(bytes, 16);
  if (moved != nullptr && address != nullptr) {
    const std::size_t old = bootstrap_bytes(address);
    std::memcpy(moved, address, old < bytes ? old : bytes);
  }
  return moved;
}
void first_free(void* address) {
  if (!in_bootstrap(address) && find_next()) next.free(address);
}
void* first_memalign(std::size_t alignment, std::size_t bytes) {
  return find_next() ? next.memalign(alignment, bytes) : bootstrap_allocate(bytes, alignment);
}
int first_posix_memalign(void** out, std::size_t alignment, std::size_t bytes) {
  if (find_next()) return next.posix_memalign(out, alignment, bytes);
  *out = bootstrap_allocate(bytes, alignment);
  return *out != nullptr ? 0 : ENOMEM;
}
void* first_aligned_alloc(std::size_t alignment, std::size_t bytes) {
  return find_next() ? next.aligned_alloc(alignment, bytes) : bootstrap_allocate(bytes, alignment);
}
void* first_valloc(std::size_t bytes) { return find_next() ? next.valloc(bytes) : nullptr; }
void* first_pvalloc(std::size_t bytes) { return find_next() ? next.pvalloc(bytes) : nullptr; }
std::size_t first_usable(void* address) {
  if (in_bootstrap(address)) return bootstrap_bytes(address);
  return find_next() ? next.malloc_usable_size(address) : 0;
}
// Needs no memory of anybody: the kernel does it, whoever comes next.
int first_madvise(void* address, std::size_t bytes, int advice) {
  return static_cast<int>(syscall(SYS_madvise, address, bytes, advice));
}
int first_mprotect(void* address, std::size_t bytes, int protection) {
  return static_cast<int>(syscall(SYS_mprotect, address, bytes, protection));
}
int first_pkey_mprotect(void* address, std::size_t bytes, int protection, int key) {
  return static_cast<int>(syscall(SYS_pkey_mprotect, address, bytes, protection, key));
}
int first_mlock(const void* address, std::size_t bytes) {
  return static_cast<int>(syscall(SYS_mlock, address, bytes));
}
int first_mlock2(const void* address, std::size_t bytes, unsigned flags) {
  return static_cast<int>(syscall(SYS_mlock2, address, bytes, flags));
}
int first_trim(std::size_t pad) { return find_next() ? next.malloc_trim(pad) : 0; }

// ---- where the bootstrap was needed: its blocks may come back at any time -----------------------

NextAllocator real;

void* careful_realloc(void* address, std::size_t bytes) {
  if (!in_bootstrap(address)) return real.realloc(address, bytes);
  void* moved = real.malloc(bytes);
  if (moved == nullptr) return nullptr;
  const std::size_t old = bootstrap_bytes(address);
  std::memcpy(moved, address, old < bytes ? old : bytes);
  return moved;
}
void careful_free(void* address) {
  if (!in_bootstrap(address)) real.free(address);
}
std::size_t careful_usable(void* address) {
  return in_bootstrap(address) ? bootstrap_bytes(address) : real.malloc_usable_size(address);
}

// ---- the search ---------------------------------------------------------------------------------

// A libc that lacks one of the rarer functions keeps the entry that returns nothing.
int no_trim(std::size_t) { return 0; }
std::size_t no_usable_size(void*) { return 0; }
void* no_paged(std::size_t) {
  errno = ENOMEM;
  return nullptr;
}

template <class Function>
void find(Function*& entry, const char* name, Function* otherwise) noexcept {
  void* found = dlsym(RTLD_NEXT, name);
  entry = found != nullptr ? reinterpret_cast<Function*>(found) : otherwise;
}

}  // namespace

constinit NextAllocator next{
    first_malloc,   first_calloc,         first_realloc,       first_free,
    first_memalign, first_posix_memalign, first_aligned_alloc, first_valloc,
    first_pvalloc,  first_usable,         first_trim,          first_madvise,
    first_mprotect, first_pkey_mprotect,  first_mlock,         first_mlock2};

bool find_next() noexcept {
  if (searching) return false;
  searching = true;
  find(real.malloc, "malloc", next.malloc);
  find(real.calloc, "calloc", next.calloc);
  find(real.realloc, "realloc", next.realloc);
  find(real.free, "free", next.free);
  find(real.memalign, "memalign", next.memalign);
  find(real.posix_memalign, "posix_memalign", next.posix_memalign);
  find(real.aligned_alloc, "aligned_alloc", next.aligned_alloc);
  find(real.valloc, "valloc", no_paged);
  find(real.pvalloc, "pvalloc", no_paged);
  find(real.malloc_usable_size, "malloc_usable_size", no_usable_size);
  find(real.malloc_trim, "malloc_trim", no_trim);
  find(real.madvise, "madvise", next.madvise);
  find(real.mprotect, "mprotect", next.mprotect);
  find(real.pkey_mprotect, "pkey_mprotect", next.pkey_mprotect);
  find(real.mlock, "mlock", next.mlock);
  find(real.mlock2, "mlock2", next.mlock2);
  NextAllocator found = real;
  if (bootstrap_used()) {
    found.realloc = careful_realloc;
    found.free = careful_free;
    found.malloc_usable_size = careful_usable;
  }
  next = found;
  return true;
}

}  // namespace ropewalk::malloc_library
