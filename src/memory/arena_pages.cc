#include "memory/arena_pages.hpp"

#include <algorithm>
#include <new>

#include "memory/guessed_range.hpp"
#include "memory/ladder.hpp"
#include "memory/options.hpp"
#include "os/hugepool.hpp"

namespace ropewalk::memory {
namespace {

MemoryOptions with_range(MemoryOptions options) {
  if (options.reserve_bytes == 0) options.reserve_bytes = environment_arena_bytes().value_or(0);
  return options;
}

// A range whose length was guessed is halved until it fits beside what else the program has mapped.
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

const Mechanism& arena_mechanism(PageSource source) {
  const Mechanism& how = mechanism(source);
  if (how.memfd) return how;
  throw Error(ErrorCode::argument,
              std::string("source: ") + name(source) +
                  " cannot grow and be mapped by peers; expected one of hugetlb-1g-memfd, "
                  "hugetlb-memfd, shmem-huge, shmem-small");
}

// The copy of a child is ordinary memory: the pool was sized for the parent, and a child that only
// calls exec should not pay for huge pages.
const Mechanism& child_mechanism(const Mechanism& parent) {
  const bool small = parent.source == PageSource::shmem_small;
  return small ? parent : mechanism(PageSource::shmem_huge);
}

}  // namespace

void refuse(std::size_t bytes, const std::string& reason) {
  throw Error(ErrorCode::memory,
              "arena: " + std::to_string(bytes) + " bytes cannot be had: " + reason);
}

ArenaPages::ArenaPages(const MemoryOptions& options, bool probe_later)
    : options_(with_range(options)),
      placement_(options_),
      explicit_range_(options_.reserve_bytes != 0) {
  if (!explicit_range_) options_.reserve_bytes = guess_range();
  if (options_.source) {
    open_growing(*options_.source);
  } else if (options_.pages == PagePolicy::never) {
    open_growing(PageSource::shmem_small);
  } else if (!open_hugetlb_whole()) {
    open_collapsed(probe_later);
  }
}

std::unique_ptr<Segment> ArenaPages::open(const Mechanism& how, bool guessed) const {
  return std::make_unique<Segment>(how, reserve(options_.reserve_bytes, guessed, how), placement_);
}

void ArenaPages::note(const std::string& shortfall) {
  add_reason(downgrade_, segment_->how().source, shortfall);
}

// A hugetlb memfd cannot hold small pages, so an arena on one ends with the pool. Under `prefer` it
// must not: so hugetlb is taken only where the pool promises the whole range at once, which needs a
// range somebody asked for. (A second segment is no way out, since peers map one.)
bool ArenaPages::open_hugetlb_whole() {
  const Mechanism& how = mechanism(PageSource::hugetlb_memfd);
  const auto pool = os::read_huge_pool(os::huge_2m);
  if (!explicit_range_) {
    // The pages are of 2 MiB either way, so this is worth a word only to somebody who has set up a
    // pool.
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
  segment_ = open(how, false);
  const std::string refused = segment_->grow(segment_->range().reserved);
  if (refused.empty() && first_granule()) {
    strict_ = true;
    return true;
  }
  note(refused);
  segment_.reset();
  return false;
}

// Backs the first granule: the pages that it gets tell what the others will get.
bool ArenaPages::first_granule() {
  if (segment_->committed() == 0) {
    const std::string refused = segment_->grow(1);
    note(refused);
    if (!refused.empty()) return false;
  }
  const Backing first = segment_->back({0, segment_->range().granule}, true);
  note(first.shortfall);
  return first.present && (!segment_->how().huge || first.huge_bytes == segment_->range().granule);
}

void ArenaPages::open_growing(PageSource source) {
  const Mechanism& how = arena_mechanism(source);
  segment_ = open(how, !explicit_range_);
  strict_ = is_strict(options_, how);
  if (!first_granule()) refuse(segment_->range().granule, downgrade_);
}

// The pool does not hold the range. So collapsed pages are used; else, under `require`, a hugetlb
// arena that ends with the pool, and under `prefer` the same memfd with small pages.
void ArenaPages::open_collapsed(bool probe_later) {
  const Mechanism& how = mechanism(PageSource::shmem_huge);
  segment_ = open(how, !explicit_range_);
  strict_ = options_.pages == PagePolicy::require;
  needs_probe_ = probe_later && !strict_;
  if (!needs_probe_) choose_collapsed();
}

void ArenaPages::choose_collapsed() {
  if (first_granule()) return;
  if (strict_) return open_growing(PageSource::hugetlb_memfd);
  segment_->settle_for(mechanism(PageSource::shmem_small));
}

void ArenaPages::probe() noexcept {
  if (!needs_probe_) return;
  try {
    choose_collapsed();
    needs_probe_ = false;
  } catch (...) {  // no memory for a text: next time
  }
}

bool ArenaPages::back(Extent extent, std::string& reason) {
  const Backing pages = segment_->back(extent, strict_);
  note(pages.shortfall);
  if (pages.present && (!strict_ || pages.shortfall.empty())) return true;
  reason = std::string(name(segment_->how().source)) + ": " + pages.shortfall;
  return false;
}

bool ArenaPages::hand_out(Extent extent) {
  if (from_pool() && !segment_->back(extent, strict_).present) return false;
  segment_->granules().hand_out(extent);
  return true;
}

void ArenaPages::settle(Extent extent) {
  const Backing pages = segment_->settle(extent);
  if (downgrade_.empty()) note(pages.shortfall);
}

bool ArenaPages::copy_in_child(std::span<const Extent> live) noexcept {
  if (!segment_->copy(live, child_mechanism(segment_->how()))) return false;
  strict_ = false;
  return true;
}

void ArenaPages::drop_in_child() noexcept {
  segment_->drop(child_mechanism(segment_->how()));
  strict_ = false;
  try {
    note("this process was forked without the memory of its parent");
  } catch (const std::bad_alloc&) {  // nor has it memory to say so
  }
}

}  // namespace ropewalk::memory
