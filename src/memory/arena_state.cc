#include "memory/arena_state.hpp"

#include <algorithm>
#include <bit>
#include <new>
#include <vector>

#include "memory/watch.hpp"

namespace ropewalk::memory {
namespace {

void add_watched(ArenaStatistics& sum, const ArenaRange& range) noexcept {
  // Acquire pairs with the release of Segment::watch: the counters are there.
  const BlockWatch* watch = range.watch.load(std::memory_order_acquire);
  if (watch == nullptr) return;
  sum.malloc_bytes = watch->counts.bytes.load(std::memory_order_relaxed);
  sum.communicated_bytes = watch->counts.communicated.load(std::memory_order_relaxed);
  sum.libc_blocks = watch->counts.libc_blocks.load(std::memory_order_relaxed);
  sum.libc_bytes = watch->counts.libc_bytes.load(std::memory_order_relaxed);
  sum.learned = watch->counts.learned.load(std::memory_order_relaxed);
  sum.unlearned = watch->counts.unlearned.load(std::memory_order_relaxed);
}

}  // namespace

ArenaState::ArenaState(const MemoryOptions& options, bool probe_later)
    : core_(options, probe_later), keeps_freed_(options.cache) {}

void ArenaState::probe() noexcept {
  if (!core_.orphaned()) core_.pages.probe();
}

void* ArenaState::allocate(std::size_t bytes, std::size_t alignment) {
  if (!std::has_single_bit(alignment)) {
    throw Error(ErrorCode::argument, "alignment: found " + std::to_string(alignment) +
                                         ", expected a power of two; pass one such as 64 or 4096");
  }
  const Hold hold(core_);
  probe();
  if (core_.orphaned()) {
    refuse(bytes, "this process was cloned without the memory of its parent");
  }
  std::string refused;
  const bool fits = bytes <= core_.segment().range().reserved;  // else rounding may overflow
  const auto block = core_.space.find(fits ? round_block(bytes) : bytes,
                                      fits ? std::max(alignment, line) : line, refused);
  if (!block) refuse(std::max(bytes, alignment), refused);
  if (!core_.pages.back(*block, refused)) {
    core_.space.give(*block);
    refuse(bytes, refused);
  }
  return core_.use(*block);
}

// Pages of large blocks go back without the lock, 0.1 s/GiB when small: a block that is neither
// live nor free has its granules for itself.
void ArenaState::deallocate(void* address) noexcept {
  if (address == nullptr) return;
  try {
    give_back(address);
  } catch (const std::bad_alloc&) {  // no memory for the books: the block is lost to the arena
  }
}

void ArenaState::give_back(const void* address) {
  constexpr std::size_t large = 8 * os::mib;
  std::vector<Extent> leaving;
  {
    const Hold hold(core_);
    const Extent block = core_.forget(address);
    if (block.bytes == 0) return;
    leaving = keeps_freed_ ? core_.space.keep(block) : std::vector<Extent>{block};
    std::erase_if(leaving, [&](Extent one) {
      if (one.bytes < large) core_.space.retire(one);
      return one.bytes < large;
    });
  }
  for (const Extent block : leaving) {
    core_.segment().release(block);
    const Hold hold(core_);
    core_.space.retire(block);
  }
}

std::size_t ArenaState::block_bytes(const void* address) const noexcept {
  const Hold hold(core_);
  return core_.live.at(core_.offset(address)).bytes;
}

std::size_t ArenaState::usable_bytes(const void* address) const {
  if (const std::size_t bytes = block_bytes(address)) return bytes;
  throw Error(
      ErrorCode::argument,
      "address: no live block of this arena begins there; pass what allocate() returned, once");
}

void ArenaState::trim() noexcept {
  try {
    const Hold hold(core_);
    core_.space.trim();
  } catch (const std::bad_alloc&) {  // no memory for the books: what is left keeps its pages
  }
}

// The range is handled in parts, so that other threads wait for the lock no longer than one part
// takes.
void ArenaState::settle(const void* address, std::size_t bytes) noexcept {
  constexpr std::size_t part = 64 * os::mib;  // about 10 ms
  const std::size_t end = core_.offset(address) + bytes;
  for (std::size_t at = core_.offset(address); at < end && !core_.orphaned();) {
    const std::size_t stop = std::min(end, os::round_down(at + part, part));
    const Hold hold(core_);
    probe();
    try {
      core_.pages.settle({at, stop - at});
    } catch (...) {  // no memory for a text; it is tried again at the next use
    }
    at = stop;
  }
}

int ArenaState::descriptor() const noexcept {
  const Hold hold(core_);
  return core_.segment().descriptor();
}

PageSource ArenaState::source() noexcept {
  const Hold hold(core_);
  probe();
  return core_.segment().how().source;
}

ArenaStatistics ArenaState::statistics() const {
  const Hold hold(core_);
  ArenaStatistics result = core_.counters;
  result.live_bytes = core_.live.bytes();
  result.cached_bytes = core_.space.kept_bytes();
  result.cache_hits = core_.space.kept_hits();
  result.cache_misses = core_.space.kept_misses();
  const std::size_t committed = core_.segment().committed();
  result.committed_bytes = committed;
  result.huge_bytes = core_.segment().granules().huge_bytes({0, committed / range().granule});
  add_watched(result, range());
  return result;
}

std::string ArenaState::downgrade() {
  const Hold hold(core_);
  probe();
  return core_.pages.downgrade();
}

// ---- a fork ----

void ArenaState::lock() noexcept {
  Inside::set(true);
  core_.mutex.lock();
  core_.segment().leave_to_child(true);
}

void ArenaState::unlock() noexcept {
  core_.segment().leave_to_child(false);
  core_.mutex.unlock();
  Inside::set(false);
}

bool ArenaState::copy_in_child() noexcept {
  if (core_.life) *core_.life.data() = std::byte{1};
  try {
    if (!core_.pages.copy_in_child(core_.live.all())) return false;
    core_.space.release_kept();
    return true;
  } catch (const std::bad_alloc&) {  // none for the books, so none for a copy
    return false;
  }
}

void ArenaState::drop_in_child() noexcept {
  if (core_.life) *core_.life.data() = std::byte{1};
  core_.live.clear();
  core_.space.clear();
  core_.pages.drop_in_child();
}

}  // namespace ropewalk::memory
