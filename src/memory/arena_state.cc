#include "memory/arena_hold.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <new>

#include "memory/guessed_range.hpp"
#include "memory/ladder.hpp"
#include "memory/options.hpp"
#include "memory/watch.hpp"
#include "os/file.hpp"
#include "os/hugepool.hpp"

namespace ropewalk::memory {
namespace {

MemoryOptions with_range(MemoryOptions options) {
  if (options.reserve_bytes == 0) options.reserve_bytes = environment_arena_bytes().value_or(0);
  return options;
}

// A range that nobody asked for is halved until it fits what else the program has mapped.
os::Mapping reserve(std::size_t bytes, bool guessed, const Mechanism& how) {
  const std::size_t unit = std::max(how.page_bytes, os::huge_2m);
  os::Mapping range;
  while (bytes < SIZE_MAX - unit) {
    range = os::reserve_range(os::round_up(bytes, unit), unit);
    if (range || !guessed || bytes <= least_range) break;
    bytes /= 2;
  }
  if (range) return range;
  throw Error(ErrorCode::memory, "arena: no address range of " + std::to_string(bytes) +
                                     " bytes; set ROPEWALK_ARENA_BYTES lower, or raise the limit "
                                     "with `ulimit -v unlimited`");
}

void add_watched(ArenaStatistics& sum, const ArenaRange& range) noexcept {
  // Acquire pairs with the release of Segment::watch: the counters are there.
  const Watch* watch = range.watch.load(std::memory_order_acquire);
  if (watch == nullptr) return;
  sum.malloc_bytes = watch->counts.bytes.load(std::memory_order_relaxed);
  sum.communicated_bytes = watch->counts.communicated.load(std::memory_order_relaxed);
  sum.libc_blocks = watch->counts.libc_blocks.load(std::memory_order_relaxed);
  sum.libc_bytes = watch->counts.libc_bytes.load(std::memory_order_relaxed);
  sum.learned = watch->counts.learned.load(std::memory_order_relaxed);
  sum.unlearned = watch->counts.unlearned.load(std::memory_order_relaxed);
}

const Mechanism& arena_mechanism(PageSource source) {
  const Mechanism& how = mechanism(source);
  if (how.memfd) return how;
  throw Error(ErrorCode::argument,
              std::string("source: ") + name(source) +
                  " cannot grow and be mapped by peers; expected one of hugetlb-1g-memfd, "
                  "hugetlb-memfd, shmem-huge, shmem-small");
}

}  // namespace

ArenaState::ArenaState(const MemoryOptions& options, bool probe_later)
    : options_(with_range(options)),
      explicit_range_(options_.reserve_bytes != 0),
      life_(os::wiped_by_fork()),
      one_node_(os::read_text("/sys/devices/system/node/online").value_or("0") == "0"),
      cache_(0) {
  if (!explicit_range_) options_.reserve_bytes = guess_range();
  if (options_.source) {
    open_growing(*options_.source);
  } else if (options_.pages == PagePolicy::never) {
    open_growing(PageSource::shmem_small);
  } else if (!open_hugetlb_whole()) {
    open_best(probe_later);
  }
  // The rest stays for blocks of other sizes.
  cache_.bound(segment_->reserved() / 4);
  if (life_) *life_.data() = std::byte{1};
}

ArenaState::~ArenaState() = default;

// A hugetlb memfd cannot hold small pages, so an arena on one ends with the pool. Under `prefer` it
// must not: so hugetlb is taken only where the pool promises the whole range at once, which needs
// a range somebody asked for. (Rather than a second segment: peers map one.)
bool ArenaState::open_hugetlb_whole() {
  const Mechanism& how = mechanism(PageSource::hugetlb_memfd);
  const auto pool = os::read_huge_pool(os::huge_2m);
  if (!explicit_range_) {
    // Pages of 2 MiB either way: worth a word only to whoever has set up a pool.
    if (pool && pool->total > 0) {
      add_reason(downgrade_, how.source,
                 "only for a range asked for that the pool holds whole; set ROPEWALK_ARENA_BYTES");
    }
    return false;
  }
  const std::size_t bytes = options_.reserve_bytes;
  if (!pool || pool->available() < bytes / os::huge_2m + (bytes % os::huge_2m != 0)) {
    add_reason(downgrade_, how.source, explain_pool(os::huge_2m, bytes, 0));
    return false;
  }
  segment_ = std::make_unique<Segment>(how, reserve(bytes, false, how));
  const std::string refused = segment_->grow(segment_->reserved());
  if (refused.empty()) free_.give({0, segment_->committed()});
  if (refused.empty() && probe()) {
    strict_ = true;
    return true;
  }
  add_reason(downgrade_, how.source, refused);
  segment_.reset();
  free_.clear();
  return false;
}

// The first granule, backed: what it gives tells what the others will.
bool ArenaState::probe() {
  if (segment_->committed() == 0) {
    const std::string refused = segment_->grow(1);
    add_reason(downgrade_, segment_->how().source, refused);
    if (!refused.empty()) return false;
    free_.give({0, segment_->committed()});
  }
  const Backing first = segment_->back({0, segment_->granule()}, true);
  add_reason(downgrade_, segment_->how().source, first.shortfall);
  return first.present && (!segment_->how().huge || first.huge_bytes == segment_->granule());
}

void ArenaState::open_growing(PageSource source) {
  const Mechanism& how = arena_mechanism(source);
  segment_ = std::make_unique<Segment>(how, reserve(options_.reserve_bytes, !explicit_range_, how));
  strict_ = is_strict(options_, how);
  if (!probe()) fail(segment_->granule(), downgrade_);
}

// No range that the pool holds: collapsed pages, else, under `require`, a hugetlb arena that ends
// with the pool; under `prefer` the same memfd with small pages.
void ArenaState::open_best(bool probe_later) {
  const Mechanism& how = mechanism(PageSource::shmem_huge);
  segment_ = std::make_unique<Segment>(how, reserve(options_.reserve_bytes, !explicit_range_, how));
  strict_ = options_.pages == PagePolicy::require;
  needs_probe_ = probe_later && !strict_;
  if (!needs_probe_) probe_best();
}

void ArenaState::probe_best() {
  if (probe()) return;
  if (!strict_) {
    segment_->settle_for(mechanism(PageSource::shmem_small));
    return;
  }
  free_.clear();
  open_growing(PageSource::hugetlb_memfd);
}

void ArenaState::ensure_probed() noexcept {
  if (!needs_probe_ || orphaned()) return;
  try {
    probe_best();
    needs_probe_ = false;
  } catch (...) {  // no memory for a text: next time
  }
}

void ArenaState::fail(std::size_t bytes, const std::string& reason) const {
  throw Error(ErrorCode::memory,
              "arena: " + std::to_string(bytes) + " bytes cannot be had: " + reason);
}

std::optional<Extent> ArenaState::take_free(std::size_t bytes, std::size_t alignment) {
  const auto base = reinterpret_cast<std::uintptr_t>(segment_->base());
  const auto offset = free_.take(bytes, alignment, base);
  if (!offset) return std::nullopt;
  return Extent{*offset, bytes};
}

std::string ArenaState::grow_for(std::size_t bytes, std::size_t alignment) {
  const auto base = reinterpret_cast<std::uintptr_t>(segment_->base());
  const std::size_t end = segment_->committed();
  const std::size_t start = os::round_up(base + end - free_.tail(end), alignment) - base;
  if (start > segment_->reserved() || bytes > segment_->reserved() - start) {
    return segment_->grow(SIZE_MAX - segment_->granule());  // its text for a full range
  }
  // Address space and file size cost nothing on ordinary memory, and few large mappings are cheaper
  // for peers than many small ones; the pages come when they are handed out. A hugetlb pool pays at
  // once.
  std::size_t wanted = start + bytes;
  if (segment_->how().memfd == os::MemfdPages::normal) {
    wanted = std::max(wanted, std::min(end + end / 8, segment_->reserved()));
  }
  std::string refused = segment_->grow(wanted);
  if (refused.empty()) free_.give({end, segment_->committed() - end});
  return refused;
}

// Nothing, with the reason, where there is no room.
std::optional<Extent> ArenaState::find_extent(std::size_t bytes, std::size_t alignment,
                                              std::string& refused) {
  if (bytes > segment_->reserved() || alignment > segment_->reserved()) {
    refused = segment_->grow(SIZE_MAX - segment_->granule());
    return std::nullopt;
  }
  const auto base = reinterpret_cast<std::uintptr_t>(segment_->base());
  if (const auto cached = cache_.take(bytes, alignment, base)) {
    ++counters_.cache_hits;
    return cached;
  }
  ++counters_.cache_misses;
  if (const auto found = take_free(bytes, alignment)) return found;
  refused = grow_for(bytes, alignment);
  if (!refused.empty()) {
    flush_cache();  // what is kept may be what is missing
    if (const auto found = take_free(bytes, alignment)) return found;
    refused = grow_for(bytes, alignment);
  }
  return refused.empty() ? take_free(bytes, alignment) : std::nullopt;
}

void* ArenaState::use(Extent block) {
  if (spare_.empty()) {
    live_.emplace(block.offset, block.bytes);
  } else {
    spare_.key() = block.offset;
    spare_.mapped() = block.bytes;
    live_.insert(std::move(spare_));
  }
  ++counters_.allocations;
  counters_.live_bytes += block.bytes;
  return segment_->base() + block.offset;
}

void* ArenaState::allocate(std::size_t bytes, std::size_t alignment) {
  if (!std::has_single_bit(alignment)) {
    throw Error(ErrorCode::argument,
                "alignment: found " + std::to_string(alignment) + "; expected a power of two");
  }
  const Hold hold(*this);
  ensure_probed();
  std::string refused;
  if (orphaned()) fail(bytes, "this process was cloned without the memory of its parent");
  const auto block = bytes > segment_->reserved()
                         ? find_extent(bytes, line, refused)
                         : find_extent(round_block(bytes), std::max(alignment, line), refused);
  if (!block) fail(std::max(bytes, alignment), refused);
  const Backing pages = segment_->back(*block, strict_);
  const bool huge_enough = !strict_ || pages.shortfall.empty();
  add_reason(downgrade_, segment_->how().source, pages.shortfall);
  if (!pages.present || !huge_enough) {
    free_.give(*block);
    fail(bytes, std::string(name(segment_->how().source)) + ": " + pages.shortfall);
  }
  return use(*block);
}

// Out of use altogether: what of its granules is now free gives its pages back.
void ArenaState::retire(Extent block) {
  const Extent joined = free_.give(block);
  const std::size_t granule = segment_->granule();
  const std::size_t begin = std::max(joined.offset, os::round_down(block.offset, granule));
  const std::size_t end =
      std::min(joined.offset + joined.bytes, os::round_up(block.offset + block.bytes, granule));
  if (end - begin >= granule) segment_->release({begin, end - begin});
}

// No longer live; bytes: 0 where it was not.
Extent ArenaState::forget(void* address) {
  const auto found = orphaned() ? live_.end() : live_.find(offset(address));
  if (found == live_.end()) {
    ++counters_.ignored_frees;
    return {0, 0};
  }
  const Extent block{found->first, found->second};
  spare_ = live_.extract(found);
  counters_.live_bytes -= block.bytes;
  touches_.look_at(segment_->base(), block);
  return block;
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

void ArenaState::give_back(void* address) {
  constexpr std::size_t large = 8 * os::mib;
  std::vector<Extent> leaving;
  {
    const Hold hold(*this);
    const Extent block = forget(address);
    if (block.bytes == 0) return;
    leaving = options_.cache ? cache_.give(block) : std::vector<Extent>{block};
    std::erase_if(leaving, [&](Extent one) {
      if (one.bytes < large) retire(one);
      return one.bytes < large;
    });
  }
  for (const Extent block : leaving) {
    segment_->release(block);
    const Hold hold(*this);
    retire(block);
  }
}

std::size_t ArenaState::block_bytes(const void* address) const noexcept {
  const Hold hold(*this);
  const auto found = live_.find(offset(address));
  return found == live_.end() ? 0 : found->second;
}

std::size_t ArenaState::usable_bytes(const void* address) const {
  if (const std::size_t bytes = block_bytes(address)) return bytes;
  throw Error(ErrorCode::argument, "address: no live block of this arena begins there");
}

void ArenaState::flush_cache() {
  for (const Extent block : cache_.clear()) free_.give(block);
}

void ArenaState::trim() noexcept {
  const Hold hold(*this);
  flush_cache();
  for (const auto& [offset, bytes] : free_.extents()) segment_->release({offset, bytes});
}

// In parts, so that other threads wait for the lock no longer than one part takes.
void ArenaState::settle(const void* address, std::size_t bytes) noexcept {
  constexpr std::size_t part = 64 * os::mib;  // about 10 ms
  const std::size_t end = offset(address) + bytes;
  for (std::size_t at = offset(address); at < end && !orphaned();) {
    const std::size_t stop = std::min(end, os::round_down(at + part, part));
    const Hold hold(*this);
    ensure_probed();
    try {
      const Backing pages = segment_->settle({at, stop - at});
      if (downgrade_.empty()) add_reason(downgrade_, segment_->how().source, pages.shortfall);
    } catch (...) {  // no memory for a text; it is tried again at the next use
    }
    at = stop;
  }
}

int ArenaState::descriptor() const noexcept {
  const Hold hold(*this);
  return segment_->descriptor();
}

PageSource ArenaState::source() noexcept {
  const Hold hold(*this);
  ensure_probed();
  return segment_->how().source;
}

ArenaStatistics ArenaState::statistics() const {
  const Hold hold(*this);
  ArenaStatistics result = counters_;
  result.cached_bytes = cache_.bytes();
  result.committed_bytes = segment_->committed();
  result.huge_bytes = segment_->huge_bytes();
  add_watched(result, range());
  return result;
}

std::string ArenaState::downgrade() {
  const Hold hold(*this);
  ensure_probed();
  return downgrade_;
}

}  // namespace ropewalk::memory
