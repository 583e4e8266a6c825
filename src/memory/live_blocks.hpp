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
  // Returns the block that begins there; bytes is 0 for none.
  Extent at(std::size_t offset) const noexcept;
  // Takes the block out, where there is one.
  Extent remove(std::size_t offset) noexcept;
  // Resizes a block that is here.
  void resize(std::size_t offset, std::size_t bytes) noexcept;
  void clear() noexcept;

  bool empty() const noexcept { return blocks_.empty(); }
  std::size_t bytes() const noexcept { return bytes_; }
  std::vector<Extent> all() const;

 private:
  std::unordered_map<std::size_t, std::size_t> blocks_;  // offset -> bytes
  // This is the node of the block that was removed last: a program that frees and allocates in turn
  // then needs no memory for our books.
  std::unordered_map<std::size_t, std::size_t>::node_type spare_;
  std::size_t bytes_ = 0;
};

}  // namespace ropewalk::memory
