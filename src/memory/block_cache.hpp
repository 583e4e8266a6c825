// The cache holds recently freed blocks, whole and with their pages, so that the next allocation of
// the same size costs no search, no page fault and no new registration with the fabric (Boyle et
// al. 2017, footnote 8).
#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <optional>
#include <vector>

#include "memory/private_copy.hpp"

namespace ropewalk::memory {

class BlockCache {
 public:
  // At most this many bytes and blocks are kept; the blocks freed longest ago leave first.
  explicit BlockCache(std::size_t most_bytes) : most_bytes_(most_bytes) {}

  // Returns a block of at least `bytes` and at most an eighth more, at a multiple of `alignment`.
  std::optional<Extent> take(std::size_t bytes, std::size_t alignment, std::size_t base);

  // Keeps the block; returns those that had to leave for it, or the block itself, if it is larger
  // than all that may be kept.
  std::vector<Extent> give(Extent block);
  // This holds from the next give() on.
  void bound(std::size_t most_bytes) noexcept { most_bytes_ = most_bytes; }
  std::optional<Extent> oldest() const noexcept;
  void drop_oldest() noexcept;
  void clear() noexcept;

  std::size_t bytes() const noexcept { return bytes_; }

 private:
  using Blocks = std::list<Extent>;  // oldest first

  void drop(std::multimap<std::size_t, Blocks::iterator>::iterator entry) noexcept;

  // Small blocks come in thousands, large ones in tens (the paper kept ten); the byte limit is what
  // matters for the large.
  static constexpr std::size_t most_blocks = 1024;

  std::size_t most_bytes_;
  std::size_t bytes_ = 0;
  Blocks blocks_;
  std::multimap<std::size_t, Blocks::iterator> by_size_;

  // This is the node of the block that left last: a program that allocates and frees in turn then
  // needs no memory for our books.
  Blocks spare_block_;
  std::multimap<std::size_t, Blocks::iterator>::node_type spare_entry_;
};

}  // namespace ropewalk::memory
