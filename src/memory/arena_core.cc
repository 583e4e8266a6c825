#include "memory/arena_core.hpp"

namespace ropewalk::memory {
namespace {

// The variable is not reached through __tls_get_addr, which may allocate.
__attribute__((tls_model("initial-exec"))) constinit thread_local bool inside = false;

}  // namespace

Inside::Inside() noexcept : before_(inside) { inside = true; }
Inside::~Inside() { inside = before_; }
bool Inside::now() noexcept { return inside; }
void Inside::set(bool now) noexcept { inside = now; }

ArenaCore::ArenaCore(const MemoryOptions& options, bool probe_later)
    : pages(options, probe_later), space(segment()), life(os::wiped_by_fork()) {
  if (life) *life.data() = std::byte{1};
}

void* ArenaCore::use(Extent block) {
  live.add(block);
  ++counters.allocations;
  return segment().range().base + block.offset;
}

Extent ArenaCore::forget(const void* address) noexcept {
  const Extent block = orphaned() ? Extent{0, 0} : live.remove(offset(address));
  if (block.bytes == 0) {
    ++counters.ignored_frees;
  } else {
    touches.look_at(segment().range().base, block);
  }
  return block;
}

}  // namespace ropewalk::memory
