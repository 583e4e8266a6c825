#include "memory/free_space.hpp"

#include "os/mapping.hpp"

namespace ropewalk::memory {

void FreeSpace::insert(Extent extent) {
  if (extent.bytes == 0) return;
  by_offset_.emplace(extent.offset, extent.bytes);
  by_size_.emplace(extent.bytes, extent.offset);
  bytes_ += extent.bytes;
}

void FreeSpace::erase(Extent extent) {
  by_offset_.erase(extent.offset);
  by_size_.erase({extent.bytes, extent.offset});
  bytes_ -= extent.bytes;
}

std::optional<std::size_t> FreeSpace::take(std::size_t bytes, std::size_t alignment,
                                           std::size_t base) {
  for (auto at = by_size_.lower_bound({bytes, 0}); at != by_size_.end(); ++at) {
    const Extent extent{at->second, at->first};
    const std::size_t start = os::round_up(base + extent.offset, alignment) - base;
    const std::size_t head = start - extent.offset;
    if (head > extent.bytes || extent.bytes - head < bytes) continue;
    erase(extent);
    insert({extent.offset, head});
    insert({start + bytes, extent.bytes - head - bytes});
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
  erase(extent);
  insert({extent.offset, head});
  insert({wanted.offset + wanted.bytes, extent.bytes - head - wanted.bytes});
  return true;
}

Extent FreeSpace::give(Extent extent) {
  auto next = by_offset_.lower_bound(extent.offset);
  if (next != by_offset_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == extent.offset) {
      extent = {before->first, before->second + extent.bytes};
      erase({before->first, before->second});
    }
  }
  next = by_offset_.lower_bound(extent.offset);
  if (next != by_offset_.end() && extent.offset + extent.bytes == next->first) {
    const Extent after{next->first, next->second};
    extent.bytes += after.bytes;
    erase(after);
  }
  insert(extent);
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
