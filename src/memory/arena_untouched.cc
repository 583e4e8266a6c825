// Blocks for malloc: they get their pages by first touch of the owner, and may change their size in
// place.
#include <algorithm>
#include <cerrno>

#include "memory/arena_hold.hpp"
#include "memory/ladder.hpp"

namespace ropewalk::memory {
namespace {

// A block without a page in common with another.
constexpr std::size_t page = 4096;

// Of the range, what malloc leaves to flags and staging areas: libc has memory for the program, but
// a communicator without staging fails in the middle of a call.
constexpr std::size_t kept_part = 8;
constexpr std::size_t most_kept = 64 * os::mib;

}  // namespace

bool ArenaState::leaves_room(std::size_t more) const noexcept {
  const std::size_t reserved = segment_->reserved();
  const std::size_t for_program = reserved - std::min(reserved / kept_part, most_kept);
  return counters_.live_bytes <= for_program && more <= for_program - counters_.live_bytes;
}

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

void* ArenaState::allocate_locked(std::size_t bytes, std::size_t alignment, bool& expect_whole,
                                  bool& fresh) noexcept {
  const Hold hold(*this);
  std::string refused;
  try {
    if (!leaves_room(bytes) || orphaned()) return use_untouched(std::nullopt);
    const std::size_t whole = round_block(bytes);
    const Extent before = touches_.last(whole);
    const auto found = live_.find(before.offset);
    if (found != live_.end() && found->second == before.bytes) {
      touches_.look_at(segment_->base(), before);
    }
    const std::uint64_t kept = counters_.cache_hits;
    const auto block = find_extent(whole, std::max(alignment, page), refused);
    // What was kept has its pages.
    const bool untouched = block && segment_->is_untouched(*block);
    expect_whole = untouched && one_node_ && touches_.expects_whole(whole);
    if (untouched && !expect_whole) touches_.handed_out(*block);
    fresh = counters_.cache_hits == kept && !expect_whole;
    return use_untouched(block);
  } catch (...) {
    return nullptr;  // libc has no memory for our books
  }
}

void* ArenaState::allocate_untouched(std::size_t bytes, std::size_t alignment,
                                     bool& fresh) noexcept {
  bool expect_whole = false;
  void* found = allocate_locked(bytes, alignment, expect_whole, fresh);
  if (found != nullptr && expect_whole && !range().settled(found, bytes)) settle(found, bytes);
  return found;
}

// Addresses cost nothing, moving does: room for 16 times the size, or as much as there is. It stays
// free for others, who take the smallest extent that fits them.
void* ArenaState::allocate_to_grow(std::size_t bytes) noexcept {
  {
    const Hold hold(*this);
    try {
      const std::size_t whole = round_block(bytes);
      for (std::size_t room = 16; room >= 2 && !orphaned(); room /= 2) {
        if (bytes > segment_->reserved() / 4 / room || !leaves_room(bytes)) continue;
        auto found = take_free(room * whole, page);
        if (!found && grow_for(room * whole, page).empty()) found = take_free(room * whole, page);
        if (!found) continue;
        free_.give({found->offset + whole, (room - 1) * whole});
        return use_untouched(Extent{found->offset, whole});
      }
    } catch (...) {
      return nullptr;
    }
  }
  bool fresh = false;
  return allocate_untouched(bytes, page, fresh);
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
    const bool larger = bytes > block.bytes;
    if (larger && !(leaves_room(bytes - block.bytes) && widen(block, bytes))) return false;
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

int ArenaState::discard(void* address, std::size_t bytes, bool locked_too) noexcept {
  if (orphaned()) return ENOMEM;
  return segment_->discard({offset(address), bytes}, locked_too);
}

void ArenaState::bound_cache(std::size_t bytes) noexcept {
  const Hold hold(*this);
  cache_.bound(std::min(bytes, segment_->reserved() / 4));
}

}  // namespace ropewalk::memory
