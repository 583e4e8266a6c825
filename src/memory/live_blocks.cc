#include "memory/live_blocks.hpp"

#include <utility>

namespace ropewalk::memory {

void LiveBlocks::add(Extent block) {
  if (spare_.empty()) {
    blocks_.emplace(block.offset, block.bytes);
  } else {
    spare_.key() = block.offset;
    spare_.mapped() = block.bytes;
    blocks_.insert(std::move(spare_));
  }
  bytes_ += block.bytes;
}

Extent LiveBlocks::at(std::size_t offset) const noexcept {
  const auto found = blocks_.find(offset);
  return found == blocks_.end() ? Extent{0, 0} : Extent{found->first, found->second};
}

Extent LiveBlocks::remove(std::size_t offset) noexcept {
  const Extent block = at(offset);
  if (block.bytes == 0) return block;
  spare_ = blocks_.extract(offset);
  bytes_ -= block.bytes;
  return block;
}

void LiveBlocks::resize(std::size_t offset, std::size_t bytes) noexcept {
  std::size_t& now = blocks_.find(offset)->second;
  bytes_ += bytes - now;
  now = bytes;
}

void LiveBlocks::clear() noexcept {
  blocks_.clear();
  bytes_ = 0;
}

std::vector<Extent> LiveBlocks::all() const {
  std::vector<Extent> blocks;
  blocks.reserve(blocks_.size());
  for (const auto& [offset, bytes] : blocks_) blocks.push_back({offset, bytes});
  return blocks;
}

}  // namespace ropewalk::memory
