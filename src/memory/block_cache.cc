#include "memory/block_cache.hpp"

namespace ropewalk::memory {

std::optional<Extent> BlockCache::take(std::size_t bytes, std::size_t alignment, std::size_t base) {
  const std::size_t largest = bytes + bytes / 8;
  for (auto at = by_size_.lower_bound(bytes); at != by_size_.end() && at->first <= largest; ++at) {
    const Extent block = *at->second;
    if ((base + block.offset) % alignment != 0) continue;
    drop(at);
    return block;
  }
  return std::nullopt;
}

std::vector<Extent> BlockCache::give(Extent block) {
  if (block.bytes > most_bytes_) return {block};
  if (spare_block_.empty()) spare_block_.emplace_back();
  spare_block_.front() = block;
  if (spare_entry_.empty()) {
    by_size_.emplace(block.bytes, spare_block_.begin());  // the last that may throw
  } else {
    spare_entry_.key() = block.bytes;
    spare_entry_.mapped() = spare_block_.begin();
    by_size_.insert(std::move(spare_entry_));
  }
  blocks_.splice(blocks_.end(), spare_block_);
  bytes_ += block.bytes;
  std::vector<Extent> leaving;
  while (bytes_ > most_bytes_ || blocks_.size() > most_blocks) {
    leaving.push_back(blocks_.front());
    drop_oldest();
  }
  return leaving;
}

std::optional<Extent> BlockCache::oldest() const noexcept {
  if (blocks_.empty()) return std::nullopt;
  return blocks_.front();
}

void BlockCache::clear() noexcept {
  blocks_.clear();
  by_size_.clear();
  bytes_ = 0;
}

void BlockCache::drop(std::multimap<std::size_t, Blocks::iterator>::iterator entry) noexcept {
  bytes_ -= entry->first;
  spare_block_.clear();
  spare_block_.splice(spare_block_.end(), blocks_, entry->second);
  spare_entry_ = by_size_.extract(entry);
}

void BlockCache::drop_oldest() noexcept {
  const auto oldest = blocks_.begin();
  auto [at, end] = by_size_.equal_range(oldest->bytes);
  while (at != end && at->second != oldest) ++at;
  drop(at);
}

}  // namespace ropewalk::memory
