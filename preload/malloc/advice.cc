// This file has madvise, mprotect and mlock for blocks of the arena. Programs and allocators built
// on malloc rely on what the kernel does with anonymous memory, but the arena is a shared file. For
// all other addresses, the cost is a compare and a jump. A program that calls the kernel without
// libc gets the behaviour of a shared file.
#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "large.hpp"
#include "next.hpp"
#include "ropewalk/export.hpp"

namespace library = ropewalk::malloc_library;

extern "C" RW_EXPORT int madvise(void* address, std::size_t bytes, int advice) noexcept {
  if (library::in_arena(address)) return library::arena_advise(address, bytes, advice);
  return library::next.madvise(address, bytes, advice);
}

extern "C" RW_EXPORT int mprotect(void* address, std::size_t bytes, int protection) noexcept {
  if (library::in_arena(address)) library::note_protection(protection);
  return library::next.mprotect(address, bytes, protection);
}

// With the key -1 it is mprotect.
extern "C" RW_EXPORT int pkey_mprotect(void* address, std::size_t bytes, int protection,
                                       int key) noexcept {
  if (library::in_arena(address)) library::note_key(protection, key);
  return library::next.pkey_mprotect(address, bytes, protection, key);
}

extern "C" RW_EXPORT int mlock(const void* address, std::size_t bytes) noexcept {
  if (library::in_arena(address)) library::note_lock();
  return library::next.mlock(address, bytes);
}

extern "C" RW_EXPORT int mlock2(const void* address, std::size_t bytes, unsigned flags) noexcept {
  if (library::in_arena(address)) library::note_lock();
  return library::next.mlock2(address, bytes, flags);
}

namespace ropewalk::malloc_library {

constinit std::atomic<unsigned> traces{0};

namespace {

// From linux/mman.h, not in older libcs:
constexpr int dont_need_locked = 24;  // since Linux 5.18
constexpr int install_guard = 102;    // since Linux 6.13; in shared memory since 6.15
constexpr int remove_guard = 103;

void note(Trace trace) noexcept { traces.fetch_or(trace, std::memory_order_relaxed); }

int pass(void* address, std::size_t bytes, int advice) noexcept {
  return next.madvise(address, bytes, advice);
}
int pass_noted(void* address, std::size_t bytes, int advice, Trace trace) noexcept {
  const int result = pass(address, bytes, advice);
  if (result == 0) note(trace);
  return result;
}

// Reads as zero afterwards, and has no pages. The kernel may do the same at any time after
// MADV_FREE, which it takes for anonymous memory only.
int discard(void* address, std::size_t bytes, bool locked_too) noexcept {
  if (bytes == 0) return 0;
  const int kept = errno;
  const int error = discard_in_arena(address, bytes, locked_too);
  errno = error == 0 ? kept : error;
  return error == 0 ? 0 : -1;
}

}  // namespace

void note_protection(int protection) noexcept {
  const int all = PROT_READ | PROT_WRITE;
  if ((protection & all) != all) note(taken_rights);
}

void note_key(int protection, int key) noexcept {
  note_protection(protection);
  if (key > 0) note(keys);
}

void note_lock() noexcept { note(locks); }

// A guard page may still be one when its block is freed, which libc's large blocks survive. Keys
// come first, since mprotect leaves them. Locked pages could not be given back.
void remove_traces(void* block, std::size_t bytes) noexcept {
  if (bytes == 0) return;
  const unsigned found = traces.load(std::memory_order_relaxed);
  const int all = PROT_READ | PROT_WRITE;
  if ((found & keys) != 0) next.pkey_mprotect(block, bytes, all, 0);
  if ((found & taken_rights) != 0) next.mprotect(block, bytes, all);
  if ((found & guards) != 0) pass(block, bytes, remove_guard);
  if ((found & locks) != 0) munlock(block, bytes);
  if ((found & left_out_of_dumps) != 0) pass(block, bytes, MADV_DODUMP);
}

int arena_advise(void* address, std::size_t bytes, int advice) noexcept {
  constexpr std::size_t page = 4096;
  const std::size_t whole = (bytes + page - 1) & ~(page - 1);
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  const std::uintptr_t offset = at - front.base.load(std::memory_order_relaxed);
  const std::size_t room = front.reserved.load(std::memory_order_relaxed) - offset;
  const bool ours = at % page == 0 && whole >= bytes && whole <= room;
  if (!ours) return pass(address, bytes, advice);  // the error is the kernel's
  switch (advice) {
    case MADV_DONTNEED:
    case MADV_FREE:
      return discard(address, whole, false);
    case dont_need_locked:
      return discard(address, whole, true);
    // What a child finds is decided for the whole arena (ROPEWALK_FORK).
    case MADV_DONTFORK:
    case MADV_DOFORK:
      return 0;
    case install_guard:
      return pass_noted(address, bytes, advice, guards);
    case MADV_DONTDUMP:
      return pass_noted(address, bytes, advice, left_out_of_dumps);
    default:
      return pass(address, bytes, advice);
  }
}

}  // namespace ropewalk::malloc_library
