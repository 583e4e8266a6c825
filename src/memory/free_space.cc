#include "memory/free_space.hpp"

#include <utility>

#include "os/mapping.hpp"

namespace ropewalk::memory {

void FreeSpace::insert(Extent extent) {
  if (extent.bytes == 0) return;
  by_offset_.emplace(extent.offset, extent.bytes);
  try {
    by_size_.emplace(extent.bytes, extent.offset);
  } catch (...) {  // in both or in neither
    by_offset_.erase(extent.offset);
    throw;
  }
  bytes_ += extent.bytes;
}

void FreeSpace::erase(Extent extent) noexcept {
  by_offset_.erase(extent.offset);
  by_size_.erase({extent.bytes, extent.offset});
  bytes_ -= extent.bytes;
}

// Takes no memory.
void FreeSpace::replace(Extent before, Extent after) noexcept {
  if (after.bytes == 0) return erase(before);
  auto offset = by_offset_.extract(before.offset);
  offset.key() = after.offset;
  offset.mapped() = after.bytes;
  by_offset_.insert(std::move(offset));
  auto size = by_size_.extract({before.bytes, before.offset});
  size.value() = {after.bytes, after.offset};
  by_size_.insert(std::move(size));
  bytes_ = bytes_ - before.bytes + after.bytes;
}

// What can fail comes first: an extent that is neither taken nor free would be lost.
void FreeSpace::split(Extent extent, std::size_t head, std::size_t taken) {
  const Extent rest{extent.offset + head + taken, extent.bytes - head - taken};
  if (head == 0) return replace(extent, rest);
  insert(rest);
  replace(extent, {extent.offset, head});
}

std::optional<std::size_t> FreeSpace::take(std::size_t bytes, std::size_t alignment,
                                           std::size_t base) {
  for (auto at = by_size_.lower_bound({bytes, 0}); at != by_size_.end(); ++at) {
    const Extent extent{at->second, at->first};
    const std::size_t start = os::round_up(base + extent.offset, alignment) - base;
    const std::size_t head = start - extent.offset;
    if (head > extent.bytes || extent.bytes - head < bytes) continue;
    split(extent, head, bytes);
    return start;
  }
  return std::nullopt;
}

bool FreeSpace::take_at(Extent wanted) {
  auto at = by_offset_.upper_bound(wanted.offset);
  if (at == by_offset_.begin()) return false;
  --at;
  const Extent extent{at->first, at->second};
  const std::size_t head = wanted.offset - extent.offset;
  if (head > extent.bytes || extent.bytes - head < wanted.bytes) return false;
  split(extent, head, wanted.bytes);
  return true;
}

Extent FreeSpace::give(Extent extent) {
  const auto next = by_offset_.lower_bound(extent.offset);
  std::optional<Extent> after;
  if (next != by_offset_.end() && extent.offset + extent.bytes == next->first) {
    after = Extent{next->first, next->second};
  }
  std::optional<Extent> before;
  if (next != by_offset_.begin()) {
    const auto previous = std::prev(next);
    if (previous->first + previous->second == extent.offset) {
      before = Extent{previous->first, previous->second};
    }
  }
  if (after) extent.bytes += after->bytes;
  if (before) {
    if (after) erase(*after);
    extent = {before->offset, before->bytes + extent.bytes};
    replace(*before, extent);
  } else if (after) {
    replace(*after, extent);
  } else {
    insert(extent);
  }
  return extent;
}

std::size_t FreeSpace::tail(std::size_t end) const {
  if (by_offset_.empty()) return 0;
  const auto last = std::prev(by_offset_.end());
  return last->first + last->second == end ? last->second : 0;
}

void FreeSpace::clear() noexcept {
  by_offset_.clear();
  by_size_.clear();
  bytes_ = 0;
}

}  // namespace ropewalk::memory
