// Replaces operator new and delete in the whole program: for one source of a test program that
// watches allocations, never for a library of tests.
#pragma once

#include <cstdlib>
#include <new>

namespace ropewalk::test {

// The including source defines it: called before every allocation. Where `may_throw`, what it
// throws is what operator new throws.
void before_new(bool may_throw);

inline void* plain_new(std::size_t bytes) noexcept { return std::malloc(bytes == 0 ? 1 : bytes); }

inline void* watched_new(std::size_t bytes) {
  before_new(true);
  if (void* found = plain_new(bytes)) return found;
  throw std::bad_alloc();
}

inline void* watched_new(std::size_t bytes, std::align_val_t alignment) {
  before_new(true);
  const auto unit = static_cast<std::size_t>(alignment);
  if (void* found = std::aligned_alloc(unit, (bytes + unit - 1) / unit * unit)) return found;
  throw std::bad_alloc();
}

inline void* quiet_new(std::size_t bytes) noexcept {
  before_new(false);
  return plain_new(bytes);
}

}  // namespace ropewalk::test

void* operator new(std::size_t bytes) { return ropewalk::test::watched_new(bytes); }
void* operator new[](std::size_t bytes) { return ropewalk::test::watched_new(bytes); }
void* operator new(std::size_t bytes, std::align_val_t a) {
  return ropewalk::test::watched_new(bytes, a);
}
void* operator new[](std::size_t bytes, std::align_val_t a) {
  return ropewalk::test::watched_new(bytes, a);
}
// The forms that do not throw, too: under the address sanitizer they would be its own, and what
// they give would be freed by the operators below. std::stable_sort uses them.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return ropewalk::test::quiet_new(bytes);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return ropewalk::test::quiet_new(bytes);
}
void operator delete(void* address) noexcept { std::free(address); }
void operator delete(void* address, const std::nothrow_t&) noexcept { std::free(address); }
void operator delete[](void* address, const std::nothrow_t&) noexcept { std::free(address); }
void operator delete[](void* address) noexcept { std::free(address); }
void operator delete(void* address, std::size_t) noexcept { std::free(address); }
void operator delete[](void* address, std::size_t) noexcept { std::free(address); }
void operator delete(void* address, std::align_val_t) noexcept { std::free(address); }
void operator delete[](void* address, std::align_val_t) noexcept { std::free(address); }
void operator delete(void* address, std::size_t, std::align_val_t) noexcept { std::free(address); }
void operator delete[](void* address, std::size_t, std::align_val_t) noexcept {
  std::free(address);
}
