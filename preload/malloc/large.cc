#include "large.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "learning.hpp"
#include "memory/fork_policy.hpp"
#include "memory/kept_blocks.hpp"
#include "memory/process_arena.hpp"
#include "next.hpp"
#include "os/cancellation.hpp"
#include "os/file.hpp"
#include "os/mapping.hpp"
#include "settings/value.hpp"

namespace ropewalk::malloc_library {

constinit Front front;

namespace {

using memory::ProcessArena;

constexpr std::size_t usual = 16;  // alignment that malloc promises

constinit memory::ProcessArenaFunction* open_process_arena = nullptr;
constinit std::atomic<const ProcessArena*> process_arena{nullptr};
constinit std::atomic<bool> deciding{false};
constinit std::atomic<bool> beginning{false};
constinit bool learns = true;  // written by decide
__attribute__((tls_model("initial-exec"))) constinit thread_local bool opening = false;

constinit char verdict[1100] = "off: nothing was allocated yet";

void say(const char* what, const char* why) noexcept {
  std::strncpy(verdict, what, sizeof verdict - 1);
  const std::size_t part = std::strlen(verdict);
  std::strncpy(verdict + part, why, sizeof verdict - 1 - part);
}

// ---- once a process -----------------------------------------------------------------------------

// What cannot be understood disables too: somebody has tried to.
bool is_disabled() noexcept {
  const settings::Value value = settings::read(settings::Id::disable);
  return value.malformed || value.is("on");
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

// Here nothing can be refused: what is malformed is told, and counts as the default.
settings::Value read_setting(settings::Id id, const char* so) noexcept {
  const settings::Value value = settings::read(id);
  if (value.malformed) say(so, settings::complaint(value).c_str());
  return value;
}

// What malloc takes from the arena begins with this size.
std::size_t threshold() noexcept {
  constexpr std::int64_t least = 4096;  // blocks of the arena are pages
  const auto value =
      read_setting(settings::Id::malloc_threshold, "on, with the default threshold: ");
  if (value.is("off")) return SIZE_MAX;
  return static_cast<std::size_t>(std::max(value.number, least));
}

bool environment_learns() noexcept {
  return !read_setting(settings::Id::malloc_learn, "on, and learns: ").is("off");
}

// Before any constructor of the program does. A malformed ROPEWALK_FORK is told by the arena.
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
  const os::NotCancelled whole;
  find_next();
  std::size_t decided = SIZE_MAX;
  if (const char* reason = why_off()) {
    say("off: ", reason);
  } else {
    say("on", "");
    learns = environment_learns();
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
  const os::NotCancelled whole;
  opening = true;
  memory::ArenaFailure failure;
  const ProcessArena* arena = open_process_arena(&failure);
  opening = false;
  if (arena != nullptr) {
    // One thread begins; another that comes here meanwhile goes to libc this once.
    if (beginning.exchange(true)) return process_arena.load(std::memory_order_acquire);
    learning::begin(*arena, learns);
    arena->bound_cache(memory::most_kept(arena->range->reserved));
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

// Returns null where this allocation is not ours.
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

// Moves a block: it is freed after its contents were copied to another place.
void* move_block(void* from, std::size_t old, void* to, std::size_t bytes) noexcept {
  if (to == nullptr) return nullptr;
  std::memcpy(to, from, std::min(old, bytes));
  return to;
}

void* from_libc(learning::Place place, std::size_t bytes, std::size_t alignment,
                bool zeroed) noexcept {
  void* found = zeroed               ? next.calloc(1, bytes)
                : alignment <= usual ? next.malloc(bytes)
                                     : next.memalign(alignment, bytes);
  if (found != nullptr) learning::placed_in_libc(place, found, bytes);
  return found;
}

void* from_arena(const ProcessArena& from, learning::Place place, const learning::Call& call,
                 std::size_t alignment) noexcept {
  bool fresh = false;
  void* found = from.allocate_untouched(call.bytes, alignment, &fresh);
  if (found != nullptr) learning::placed_in_arena(place, call, found, fresh);
  return found;
}

// A block that grows belongs to the call site that last made it grow.
void* from_arena_to_grow(const ProcessArena& from, learning::Place place,
                         const learning::Call& call) noexcept {
  void* found = from.allocate_to_grow(call.bytes);
  if (found != nullptr) learning::placed_in_arena(place, call, found, true);
  return found;
}

bool resize(const ProcessArena& from, void* address, std::size_t old, std::size_t bytes) noexcept {
  learning::shrinks(address, old, bytes);
  // A page that the program has protected must not go to the next block.
  constexpr std::size_t page = 4096;
  const std::size_t kept = (bytes + page - 1) / page * page;
  if (kept < old) clean(static_cast<std::byte*>(address) + kept, old - kept);
  if (!from.resize(address, bytes)) return false;
  learning::grew(address, old, bytes);
  return true;
}

void* realloc_in_libc(void* address, std::size_t bytes) noexcept {
  void* found = next.realloc(address, bytes);
  learning::moved_in_libc(address, found, bytes);
  return found;
}

// Frees a block whose contents have moved elsewhere, which is no evidence against its place.
void free_moved(const ProcessArena& from, void* address, std::size_t bytes) noexcept {
  learning::shrinks(address, bytes, 0);
  clean(address, bytes);
  from.deallocate(address);
}

}  // namespace

void* large_allocate(std::size_t bytes, std::size_t alignment, const void* caller) noexcept {
  const ProcessArena* from = arena_for(bytes);
  if (from == nullptr) return nullptr;
  const learning::Call call{bytes, caller, false};
  const learning::Place place = learning::place_of(call, __builtin_frame_address(0));
  if (learning::wants_libc(place, call)) return from_libc(place, bytes, alignment, false);
  return from_arena(*from, place, call, alignment);
}

void* large_callocate(std::size_t bytes, const void* caller) noexcept {
  const ProcessArena* from = arena_for(bytes);
  if (from == nullptr) return nullptr;
  const learning::Call call{bytes, caller, true};
  const learning::Place place = learning::place_of(call, __builtin_frame_address(0));
  if (learning::wants_libc(place, call)) return from_libc(place, bytes, 1, true);
  void* found = from_arena(*from, place, call, 1);
  if (found != nullptr) from->clear(found, bytes);
  return found;
}

void arena_free(void* address) noexcept {
  const int kept = errno;
  const ProcessArena& from = arena();
  const std::size_t bytes = from.block_bytes(address);
  learning::freed(address, bytes);
  clean(address, bytes);
  from.deallocate(address);
  errno = kept;
}

std::size_t arena_block_bytes(const void* address) noexcept { return arena().block_bytes(address); }

int discard_in_arena(void* address, std::size_t bytes, bool locked_too) noexcept {
  return arena().discard(address, bytes, locked_too);
}

bool arena_trim() noexcept {
  const ProcessArena* from = process_arena.load(std::memory_order_acquire);
  if (from == nullptr || from->busy()) return false;
  from->trim();
  return true;
}

// Small blocks go back to libc, well below the threshold, so that a size near it does not go to and
// fro.
void* arena_reallocate(void* address, std::size_t bytes, const void* caller) noexcept {
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
    if (old > 0 && resize(from, address, old, bytes)) return address;
    const learning::Call call{bytes, caller, false};
    const learning::Place place = learning::place_of(call, __builtin_frame_address(0));
    if (old > 0) moved = from_arena_to_grow(from, place, call);
    if (moved == nullptr) moved = next.malloc(bytes);
  }
  if (move_block(address, old, moved, bytes) != nullptr) free_moved(from, address, old);
  return moved;
}

// A block of libc that is large itself stays there: it was refused, or it was allocated before the
// library began, and libc can move it without a copy.
void* large_reallocate(void* address, std::size_t bytes, const void* caller) noexcept {
  const ProcessArena* to = arena_for(bytes);
  if (to == nullptr) return next.realloc(address, bytes);
  const std::size_t old = address == nullptr ? 0 : next.malloc_usable_size(address);
  const bool stays = old >= front.threshold.load(std::memory_order_relaxed);
  if (stays || (address != nullptr && old == 0)) return realloc_in_libc(address, bytes);
  const learning::Call call{bytes, caller, false};
  const learning::Place place = learning::place_of(call, __builtin_frame_address(0));
  if (learning::wants_libc(place, call)) {
    void* found = next.realloc(address, bytes);
    if (found != nullptr) learning::placed_in_libc(place, found, bytes);
    return found;
  }
  if (address == nullptr) {
    void* found = from_arena(*to, place, call, 1);
    return found != nullptr ? found : next.malloc(bytes);
  }
  void* moved = from_arena_to_grow(*to, place, call);
  if (moved == nullptr) return next.realloc(address, bytes);
  move_block(address, old, moved, bytes);
  next.free(address);
  return moved;
}

void given_free(void* address) noexcept {
  learning::freed_in_libc(address);
  next.free(address);
}

void* given_reallocate(void* address, std::size_t bytes) noexcept {
  return realloc_in_libc(address, bytes);
}

const char* state() noexcept {
  if (front.threshold.load(std::memory_order_acquire) == 0) decide();
  return verdict;
}

}  // namespace ropewalk::malloc_library
