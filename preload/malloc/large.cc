#include "large.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>

#include "memory/fork_policy.hpp"
#include "memory/options.hpp"
#include "memory/process_arena.hpp"
#include "next.hpp"
#include "os/file.hpp"
#include "os/mapping.hpp"

namespace ropewalk::malloc_library {

constinit Front front;

namespace {

using memory::ProcessArena;

// Freed blocks are kept with their pages up to this sum: what is allocated and freed in a loop, up
// to this size, costs no page faults. libc keeps as much at most: twice its largest mmap threshold,
// 64 MiB, in each of its arenas.
constexpr std::size_t most_kept = 128 * os::mib;
constexpr std::size_t kept_part = 64;  // of the arena's range: ranks share a node

constinit memory::ProcessArenaFunction* open_process_arena = nullptr;
constinit std::atomic<const ProcessArena*> process_arena{nullptr};
constinit std::atomic<bool> deciding{false};
__attribute__((tls_model("initial-exec"))) constinit thread_local bool opening = false;

constinit char verdict[1100] = "off: nothing was allocated yet";

void say(const char* what, const char* why) noexcept {
  std::strncpy(verdict, what, sizeof verdict - 1);
  const std::size_t part = std::strlen(verdict);
  std::strncpy(verdict + part, why, sizeof verdict - 1 - part);
}

// ---- once a process -----------------------------------------------------------------------------

bool is_disabled() noexcept {
  const char* text = std::getenv("ROPEWALK_DISABLE");
  return text != nullptr && *text != '\0' && std::strcmp(text, "0") != 0;
}

// Reason to leave everything to the next allocator; null for none.
const char* why_off() {
  if (is_disabled()) return "ROPEWALK_DISABLE";
  // Some calls would reach us, others not: a sanitizer, or an allocator linked into the program.
  if (dlsym(RTLD_DEFAULT, "malloc") != reinterpret_cast<void*>(ropewalk_own_malloc)) {
    return "this process has another malloc, which comes first";
  }
  // Pages of a memfd are counted when they are touched, so there a touch may be SIGBUS where libc's
  // malloc would have returned null.
  if (os::read_number("/proc/sys/vm/overcommit_memory") == 2) {
    return "vm.overcommit_memory is 2: memory must be promised before it is touched";
  }
  return nullptr;
}

std::size_t threshold() noexcept {
  try {
    return memory::environment_malloc_threshold();
  } catch (const std::exception& error) {
    say("on, with the default threshold: ", error.what());
    return memory::default_malloc_threshold;
  }
}

// In the order of handlers for fork the first are best: before it they run last, after it first, so
// that everybody else's find the memory as it was. A malformed ROPEWALK_FORK is told by the arena.
void prepare_for_fork() noexcept {
  try {
    memory::install_fork_handlers();
  } catch (...) {
  }
}

// At the first allocation after libc has the environment, that is before any constructor but libc's
// has finished. Everything is done here that takes the dynamic linker's lock.
void decide() noexcept {
  if (environ == nullptr || deciding.exchange(true)) return;
  find_next();
  std::size_t decided = SIZE_MAX;
  if (const char* reason = why_off()) {
    say("off: ", reason);
  } else {
    say("on", "");
    decided = threshold();
    if (decided == SIZE_MAX) say("off: ", "ROPEWALK_MALLOC_THRESHOLD");
    open_process_arena = memory::find_process_arena();
    prepare_for_fork();
  }
  front.threshold.store(decided, std::memory_order_release);
}

// ---- the arena ----------------------------------------------------------------------------------

const ProcessArena* open_arena() noexcept {
  if (opening || open_process_arena == nullptr) return nullptr;
  opening = true;
  memory::Failure failure;
  const ProcessArena* arena = open_process_arena(&failure);
  opening = false;
  if (arena != nullptr) {
    arena->bound_cache(std::min(most_kept, arena->range->reserved / kept_part));
    front.base.store(reinterpret_cast<std::uintptr_t>(arena->range->base),
                     std::memory_order_release);
    front.reserved.store(arena->range->reserved, std::memory_order_release);
    process_arena.store(arena, std::memory_order_release);
  } else if (failure.text[0] != '\0') {  // else somebody, perhaps this thread, is making it
    say("off: ", failure.text);
    front.threshold.store(SIZE_MAX, std::memory_order_release);
  }
  return arena;
}

// Acquire pairs with the release in open_arena: the table is complete.
const ProcessArena& arena() noexcept { return *process_arena.load(std::memory_order_acquire); }

// Null where this allocation is not ours.
const ProcessArena* arena_for(std::size_t bytes) noexcept {
  std::size_t least = front.threshold.load(std::memory_order_acquire);
  if (least == 0) {
    decide();
    least = front.threshold.load(std::memory_order_acquire);
  }
  if (least == 0 || least == SIZE_MAX || bytes < least) return nullptr;
  const ProcessArena* found = process_arena.load(std::memory_order_acquire);
  if (found == nullptr) found = open_arena();
  return found != nullptr && !found->busy() ? found : nullptr;
}

// Freed after what it holds was copied to another place.
void* move_block(void* from, std::size_t old, void* to, std::size_t bytes) noexcept {
  if (to == nullptr) return nullptr;
  std::memcpy(to, from, std::min(old, bytes));
  return to;
}

}  // namespace

void* large_allocate(std::size_t bytes, std::size_t alignment) noexcept {
  const ProcessArena* from = arena_for(bytes);
  return from == nullptr ? nullptr : from->allocate_untouched(bytes, alignment);
}

void* large_callocate(std::size_t bytes) noexcept {
  void* found = large_allocate(bytes, 1);
  if (found != nullptr) arena().clear(found, bytes);
  return found;
}

void arena_free(void* address) noexcept {
  const int kept = errno;
  arena().deallocate(address);
  errno = kept;
}

std::size_t arena_block_bytes(const void* address) noexcept { return arena().block_bytes(address); }

bool arena_trim() noexcept {
  const ProcessArena* from = process_arena.load(std::memory_order_acquire);
  if (from == nullptr || from->busy()) return false;
  from->trim();
  return true;
}

// Small blocks go back to libc, well below the threshold, so that a size near it does not go to and
// fro.
void* arena_reallocate(void* address, std::size_t bytes) noexcept {
  const ProcessArena& from = arena();
  if (bytes == 0) {
    arena_free(address);
    return nullptr;
  }
  const std::size_t old = from.block_bytes(address);
  const bool small = bytes < front.threshold.load(std::memory_order_relaxed) / 2;
  void* moved = nullptr;
  if (old > 0 && small) moved = next.malloc(bytes);
  if (moved == nullptr) {
    if (old > 0 && from.resize(address, bytes)) return address;
    if (old > 0) moved = from.allocate_to_grow(bytes);
    if (moved == nullptr) moved = next.malloc(bytes);
  }
  if (move_block(address, old, moved, bytes) != nullptr) arena_free(address);
  return moved;
}

// A block of libc that is large itself stays there: it was refused, or it is from before we began,
// and libc can move it without a copy.
void* large_reallocate(void* address, std::size_t bytes) noexcept {
  const ProcessArena* to = arena_for(bytes);
  if (to == nullptr) return next.realloc(address, bytes);
  if (address == nullptr) {
    void* found = to->allocate_untouched(bytes, 1);
    return found != nullptr ? found : next.malloc(bytes);
  }
  const std::size_t old = next.malloc_usable_size(address);
  if (old == 0 || old >= front.threshold.load(std::memory_order_relaxed)) {
    return next.realloc(address, bytes);
  }
  void* moved = to->allocate_to_grow(bytes);
  if (moved == nullptr) return next.realloc(address, bytes);
  move_block(address, old, moved, bytes);
  next.free(address);
  return moved;
}

const char* state() noexcept {
  if (front.threshold.load(std::memory_order_acquire) == 0) decide();
  return verdict;
}

}  // namespace ropewalk::malloc_library
