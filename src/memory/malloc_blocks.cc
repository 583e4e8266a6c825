#include "memory/malloc_blocks.hpp"

#include <algorithm>
#include <cerrno>
#include <string>

#include "os/file.hpp"

namespace ropewalk::memory {
namespace {

// A block of this alignment and length shares no page with another one.
constexpr std::size_t page = 4096;

// malloc leaves this part of the range (one in 8) to flags and staging areas: libc has memory for
// the program, but a communicator without staging fails in the middle of a call.
constexpr std::size_t kept_part = 8;
constexpr std::size_t most_kept = 64 * os::mib;

}  // namespace

MallocBlocks::MallocBlocks(ArenaState& arena)
    : arena_(arena),
      core_(arena.core()),
      one_node_(os::read_text("/sys/devices/system/node/online").value_or("0") == "0") {}

bool MallocBlocks::leaves_room(std::size_t more) const noexcept {
  const std::size_t reserved = core_.segment().range().reserved;
  const std::size_t for_program = reserved - std::min(reserved / kept_part, most_kept);
  const std::size_t live = core_.live.bytes();
  return live <= for_program && more <= for_program - live;
}

void* MallocBlocks::use(std::optional<Extent> block) {
  if (block && core_.pages.hand_out(*block)) return core_.use(*block);
  if (block) core_.space.give(*block);
  ++core_.counters.refusals;
  return nullptr;
}

// `whole`: the block is expected to be written whole, so its pages are worth making at once.
std::optional<Extent> MallocBlocks::find(std::size_t bytes, std::size_t alignment, bool& whole,
                                         bool& fresh) {
  if (!leaves_room(bytes) || core_.orphaned()) return std::nullopt;
  const std::size_t rounded = round_block(bytes);
  const Extent before = core_.touches.last(rounded);
  if (before.bytes > 0 && core_.live.at(before.offset).bytes == before.bytes) {
    core_.touches.look_at(core_.segment().range().base, before);
  }
  const std::uint64_t hits = core_.space.kept_hits();
  std::string refused;
  const auto block = core_.space.find(rounded, std::max(alignment, page), refused);
  // A kept block still has its pages.
  const bool untouched = block && core_.segment().granules().is_untouched(*block);
  whole = untouched && one_node_ && core_.touches.expects_whole(rounded);
  if (untouched && !whole) core_.touches.handed_out(*block);
  fresh = core_.space.kept_hits() == hits && !whole;
  return block;
}

void* MallocBlocks::allocate(std::size_t bytes, std::size_t alignment, bool& fresh) noexcept {
  bool whole = false;
  void* found = nullptr;
  try {
    const Hold hold(core_);
    found = use(find(bytes, alignment, whole, fresh));
  } catch (...) {
    return nullptr;  // libc has no memory for our books
  }
  if (found != nullptr && whole && !arena_.range().settled(found, bytes)) {
    arena_.settle(found, bytes);
  }
  return found;
}

// Addresses cost nothing, moving does: room for 16 times the size, or as much as there is. It stays
// free for others, who take the smallest extent that fits them.
std::optional<Extent> MallocBlocks::find_to_grow(std::size_t bytes) {
  const std::size_t rounded = round_block(bytes);
  for (std::size_t room = 16; room >= 2 && !core_.orphaned(); room /= 2) {
    if (bytes > core_.segment().range().reserved / 4 / room || !leaves_room(bytes)) continue;
    const auto found = core_.space.take(room * rounded, page);
    if (!found) continue;
    core_.space.give({found->offset + rounded, (room - 1) * rounded});
    return Extent{found->offset, rounded};
  }
  return std::nullopt;
}

void* MallocBlocks::allocate_to_grow(std::size_t bytes) noexcept {
  try {
    const Hold hold(core_);
    if (const auto found = find_to_grow(bytes)) return use(found);
  } catch (...) {
    return nullptr;
  }
  bool fresh = false;
  return allocate(bytes, page, fresh);
}

// Takes the extent behind the block, from what is free or by committing more.
bool MallocBlocks::widen(Extent block, std::size_t bytes) {
  const Extent more{block.offset + block.bytes, bytes - block.bytes};
  if (!core_.space.take_at(more)) return false;
  if (core_.pages.hand_out(more)) return true;
  core_.space.give(more);
  return false;
}

bool MallocBlocks::resize(void* address, std::size_t bytes) noexcept {
  const Hold hold(core_);
  const Extent block = core_.live.at(core_.offset(address));
  const std::size_t reserved = core_.segment().range().reserved;
  if (block.bytes == 0 || core_.orphaned() || bytes > reserved) return false;
  bytes = round_block(bytes);
  try {
    const bool larger = bytes > block.bytes;
    if (larger && !(leaves_room(bytes - block.bytes) && widen(block, bytes))) return false;
    if (bytes < block.bytes) core_.space.retire({block.offset + bytes, block.bytes - bytes});
  } catch (...) {
    return false;
  }
  core_.live.resize(block.offset, bytes);
  return true;
}

void MallocBlocks::clear(void* address, std::size_t bytes) noexcept {
  Segment::clear(arena_.descriptor(), core_.segment().range().base, {core_.offset(address), bytes});
}

int MallocBlocks::discard(void* address, std::size_t bytes, bool locked_too) noexcept {
  if (core_.orphaned()) return ENOMEM;
  return core_.segment().discard({core_.offset(address), bytes}, locked_too);
}

void MallocBlocks::bound_cache(std::size_t bytes) noexcept {
  const Hold hold(core_);
  core_.space.bound_kept(bytes);
}

}  // namespace ropewalk::memory
