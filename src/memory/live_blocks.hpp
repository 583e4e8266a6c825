// The blocks of an arena that are in use, by offset.
#pragma once

#include <cstddef>
#include <unordered_map>
#include <vector>

#include "memory/private_copy.hpp"

namespace ropewalk::memory {

class LiveBlocks {
 public:
  void add(Extent block);
  // The one that begins there; bytes: 0 for none.
  Extent at(std::size_t offset) const noexcept;
  // Takes it out, where there is one.
  Extent remove(std::size_t offset) noexcept;
  // Of one that is here.
  void resize(std::size_t offset, std::size_t bytes) noexcept;
  void clear() noexcept;

  bool empty() const noexcept { return blocks_.empty(); }
  std::size_t bytes() const noexcept { return bytes_; }
  std::vector<Extent> all() const;

 private:
  std::unordered_map<std::size_t, std::size_t> blocks_;  // offset -> bytes
  // Of the block that was removed last: whoever frees and allocates in turn needs no memory for it.
  std::unordered_map<std::size_t, std::size_t>::node_type spare_;
  std::size_t bytes_ = 0;
};

}  // namespace ropewalk::memory
