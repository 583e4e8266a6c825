// Blocks for malloc: they get their pages by first touch of the owner, and may change their size in
// place.
#include "memory/arena_hold.hpp"
#include "memory/ladder.hpp"

namespace ropewalk::memory {
namespace {

// A block without a page in common with another.
constexpr std::size_t page = 4096;

}  // namespace

// A hugetlb page that the pool or a control group does not give is SIGBUS at first touch: such
// pages are made at once.
void* ArenaState::use_untouched(std::optional<Extent> block) {
  if (!block) {
    ++counters_.refusals;
    return nullptr;
  }
  const bool pool = segment_->how().memfd != os::MemfdPages::normal;
  if (pool && !segment_->back(*block, strict_).present) {
    free_.give(*block);
    ++counters_.refusals;
    return nullptr;
  }
  segment_->hand_out(*block);
  return use(*block);
}

void* ArenaState::allocate_untouched(std::size_t bytes, std::size_t alignment) noexcept {
  const Hold hold(*this);
  std::string refused;
  try {
    if (bytes > segment_->reserved() || orphaned()) return use_untouched(std::nullopt);
    return use_untouched(find_extent(round_block(bytes), std::max(alignment, page), refused));
  } catch (...) {
    return nullptr;  // libc has no memory for our books
  }
}

void* ArenaState::allocate_to_grow(std::size_t bytes) noexcept {
  {
    const Hold hold(*this);
    try {
      const std::size_t whole = round_block(bytes);
      if (bytes > segment_->reserved() / 4 || orphaned()) return nullptr;
      auto found = take_free(2 * whole, page);
      if (!found && grow_for(2 * whole, page).empty()) found = take_free(2 * whole, page);
      if (found) {
        free_.give({found->offset + whole, whole});
        return use_untouched(Extent{found->offset, whole});
      }
    } catch (...) {
      return nullptr;
    }
  }
  return allocate_untouched(bytes, page);
}

// The extent behind the block, from what is free or by committing more.
bool ArenaState::widen(Extent block, std::size_t bytes) {
  const Extent more{block.offset + block.bytes, bytes - block.bytes};
  if (!free_.take_at(more)) {
    const std::size_t end = segment_->committed();
    if (more.offset + free_.tail(end) != end || bytes > segment_->reserved()) return false;
    if (!grow_for(more.bytes, line).empty() || !free_.take_at(more)) return false;
  }
  const bool pool = segment_->how().memfd != os::MemfdPages::normal;
  if (pool && !segment_->back(more, strict_).present) {
    free_.give(more);
    return false;
  }
  segment_->hand_out(more);
  return true;
}

bool ArenaState::resize(void* address, std::size_t bytes) noexcept {
  const Hold hold(*this);
  const auto found = live_.find(offset(address));
  if (found == live_.end() || orphaned() || bytes > segment_->reserved()) return false;
  const Extent block{found->first, found->second};
  bytes = round_block(bytes);
  try {
    if (bytes > block.bytes && !widen(block, bytes)) return false;
    if (bytes < block.bytes) retire({block.offset + bytes, block.bytes - bytes});
  } catch (...) {
    return false;
  }
  counters_.live_bytes += bytes - block.bytes;
  found->second = bytes;
  return true;
}

void ArenaState::clear(void* address, std::size_t bytes) noexcept {
  int file = -1;
  {
    const Hold hold(*this);
    file = segment_->descriptor();
  }
  Segment::clear(file, segment_->base(), {offset(address), bytes});
}

void ArenaState::bound_cache(std::size_t bytes) noexcept {
  const Hold hold(*this);
  cache_.bound(std::min(bytes, segment_->reserved() / 4));
}

}  // namespace ropewalk::memory
