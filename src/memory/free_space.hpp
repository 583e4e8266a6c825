// Which parts of an arena are free: extents in order of address, neighbours always joined. Offsets
// only; it touches no memory.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "memory/private_copy.hpp"

namespace ropewalk::memory {

class FreeSpace {
 public:
  // Takes the best fit: the smallest extent that holds `bytes` at a multiple of `alignment`,
  // counted from an address that is `base` at offset 0. The cost is logarithmic in the number of
  // extents while extents of that size are aligned alike.
  std::optional<std::size_t> take(std::size_t bytes, std::size_t alignment, std::size_t base);

  // Takes exactly this extent; returns false where not all of it is free.
  bool take_at(Extent extent);

  // Adds an extent that is not free now. Returns the joined extent it lies in.
  Extent give(Extent extent);

  // Free bytes that end at `end`.
  std::size_t tail(std::size_t end) const;
  std::size_t bytes() const noexcept { return bytes_; }
  const std::map<std::size_t, std::size_t>& extents() const noexcept { return by_offset_; }
  void clear() noexcept;

 private:
  void insert(Extent extent);
  void erase(Extent) noexcept;
  void replace(Extent before, Extent after) noexcept;
  void split(Extent, std::size_t head, std::size_t taken);

  std::map<std::size_t, std::size_t> by_offset_;           // offset -> bytes
  std::set<std::pair<std::size_t, std::size_t>> by_size_;  // bytes, offset
  std::size_t bytes_ = 0;
};

}  // namespace ropewalk::memory
