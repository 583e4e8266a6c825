#include "ropewalk/detail/library_blocks.hpp"

#include <dlfcn.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <mutex>
#include <string_view>

#include "memory/kept_blocks.hpp"
#include "memory/process_arena.hpp"
#include "os/file.hpp"
#include "os/imports.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::detail {
namespace {

using memory::ProcessArena;
using Memalign = int(void**, std::size_t, std::size_t);
using Free = void(void*);

// What the library calls reads these. They are written before it is made to call us, and stay.
constinit Memalign* next_memalign = nullptr;
constinit Free* next_free = nullptr;
constinit const ProcessArena* arena = nullptr;

// These may change at any time; relaxed is enough, since nothing else depends on them.
constinit std::atomic<std::size_t> least{SIZE_MAX};
constinit std::atomic<bool> asked{false};

// The whole range counts: what lies there and is no block is no block of the next allocator either.
bool lies_in_arena(const void* address) noexcept {
  const auto base = reinterpret_cast<std::uintptr_t>(arena->range->base);
  return reinterpret_cast<std::uintptr_t>(address) - base < arena->range->reserved;
}

bool is_power_of_two(std::size_t value) noexcept {
  return value != 0 && (value & (value - 1)) == 0;
}

void* from_arena(std::size_t alignment, std::size_t bytes) noexcept {
  if (!asked.load(std::memory_order_relaxed)) asked.store(true, std::memory_order_relaxed);
  if (!is_power_of_two(alignment) || arena->busy()) return nullptr;
  bool fresh = false;
  return arena->allocate_untouched(bytes, alignment, &fresh);
}

int allocate(void** out, std::size_t alignment, std::size_t bytes) noexcept {
  if (bytes >= least.load(std::memory_order_relaxed)) {
    if (void* found = from_arena(alignment, bytes)) {
      *out = found;
      return 0;
    }
  }
  return next_memalign(out, alignment, bytes);
}

void release(void* address) noexcept {
  if (!lies_in_arena(address)) return next_free(address);
  const int kept = errno;
  arena->deallocate(address);
  errno = kept;
}

// Throws where blocks must not lie in the arena.
void require_promises() {
  if (os::read_number("/proc/sys/vm/overcommit_memory") == 2) {
    throw Error(ErrorCode::unsupported,
                "allocator: vm.overcommit_memory is 2, but memory that peers can map cannot be "
                "promised before it is touched; set it to 0 or 1");
  }
}

template <class Function>
Function* next(const char* name) {
  // The first in the order of all libraries is the one that the library calls, too.
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

const ProcessArena& open_arena() {
  memory::ArenaFailure failure;
  const ProcessArena* found = memory::find_process_arena()(&failure);
  if (found == nullptr) throw Error(failure.code, failure.text);
  return *found;
}

// Freeing comes first: a block of ours must never reach the next allocator.
void redirect(const std::string& library) {
  require_promises();
  next_memalign = next<Memalign>("posix_memalign");
  next_free = next<Free>("free");
  arena = &open_arena();
  arena->bound_cache(memory::most_kept(arena->range->reserved));
  const bool frees = os::replace_import(library, "free", reinterpret_cast<void*>(&release)) > 0;
  if (!frees ||
      os::replace_import(library, "posix_memalign", reinterpret_cast<void*>(&allocate)) == 0) {
    throw Error(ErrorCode::unsupported,
                "allocator: no library " + library + " is loaded that calls posix_memalign");
  }
}

void require_same(const std::string& served, const std::string& library) {
  if (served != library) {
    throw Error(ErrorCode::argument, "library: " + library + ", expected " + served +
                                         ": one library is served in a process");
  }
}

}  // namespace

std::size_t place_library_blocks(const std::string& library, std::size_t least_bytes) {
  static std::mutex mutex;
  static std::string served;
  if (malloc_library_serves()) return SIZE_MAX;
  const std::lock_guard lock(mutex);
  if (served.empty()) {
    redirect(library);
    served = library;
  }
  require_same(served, library);
  return least.exchange(least_bytes, std::memory_order_relaxed);
}

bool library_has_asked() noexcept { return asked.load(std::memory_order_relaxed); }

bool malloc_library_serves() noexcept {
  using State = const char*();
  auto* state = reinterpret_cast<State*>(dlsym(RTLD_DEFAULT, "ropewalk_malloc_state"));
  return state != nullptr && std::string_view(state()).starts_with("on");
}

}  // namespace ropewalk::detail
