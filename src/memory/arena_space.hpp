// What of an arena's range is not in use: free extents, freed blocks that are kept whole for the
// next of their size, and, behind them, what can still be committed. Not thread-safe: the arena's
// lock covers it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "memory/block_cache.hpp"
#include "memory/free_space.hpp"
#include "memory/segment.hpp"

namespace ropewalk::memory {

inline constexpr std::size_t line = 128;  // two cache lines: the pair that x86 fetches together

class ArenaSpace {
 public:
  // What the segment has committed is free.
  explicit ArenaSpace(Segment& segment);

  // Takes a kept block, what is free, or what can be committed. Returns nothing, with the reason,
  // where there is no room.
  std::optional<Extent> find(std::size_t bytes, std::size_t alignment, std::string& refused);
  // Does the same without kept blocks.
  std::optional<Extent> take(std::size_t bytes, std::size_t alignment);
  // Takes exactly this extent; returns false where not all of it can be had.
  bool take_at(Extent extent);

  // The extent is free again, with what pages it has.
  Extent give(Extent extent);
  // The extent is no longer in use, and not kept: granules that are now wholly free give their
  // pages back.
  void retire(Extent block);
  // Keeps a freed block; returns those to be retired for it.
  std::vector<Extent> keep(Extent block) { return kept_.give(block); }
  // Freed blocks are kept up to this sum, and at most to a quarter of the range: the rest stays for
  // blocks of other sizes.
  void bound_kept(std::size_t bytes) noexcept;
  void release_kept();
  // Kept blocks are free, and what is free has no pages.
  void trim();
  // Nothing is free, nor kept.
  void clear() noexcept;

  std::size_t kept_bytes() const noexcept { return kept_.bytes(); }
  std::uint64_t kept_hits() const noexcept { return hits_; }
  std::uint64_t kept_misses() const noexcept { return misses_; }

 private:
  std::size_t base() const noexcept;
  std::optional<Extent> take_free(std::size_t bytes, std::size_t alignment);
  std::string grow(std::size_t bytes, std::size_t alignment);
  void adopt();

  Segment& segment_;
  std::size_t known_ = 0;  // up to here the committed range is or was in free_
  FreeSpace free_;
  BlockCache kept_;
  std::uint64_t hits_ = 0;
  std::uint64_t misses_ = 0;
};

}  // namespace ropewalk::memory
