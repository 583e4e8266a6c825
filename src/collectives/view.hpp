// A buffer of elements seen as bytes without gaps: itself, or a packed copy in the arena.
#pragma once

#include <cstddef>
#include <vector>

#include "collectives/datatypes.hpp"

namespace ropewalk::collectives {

class View {
 public:
  // `count` elements.
  View(const Elements&, const void* data, std::size_t count);
  // Views a block of elements for each of `ranks` ranks, as in the forms of MPI that end in v; what
  // lies between the blocks is never touched. Null counts or displacements stay null, for others to
  // refuse.
  View(const Elements&, const void* data, const std::size_t* counts,
       const std::size_t* displacements, int ranks);
  ~View();
  View(const View&) = delete;
  View& operator=(const View&) = delete;

  // Copy between the elements and their packed bytes; nothing to do where these are the same.
  void pack();
  void unpack();
  void unpack_only(std::size_t count);  // the first elements of a view without blocks

  void* data() const noexcept { return data_; }
  // The numbers are in bytes: of all elements, and of each rank's block.
  std::size_t bytes() const noexcept { return bytes_; }
  const std::size_t* counts() const noexcept { return pointer(counts_); }
  const std::size_t* displacements() const noexcept { return pointer(displacements_); }

 private:
  struct Block {
    std::size_t first;  // element
    std::size_t count;
  };
  static const std::size_t* pointer(const std::vector<std::size_t>& sizes) {
    return sizes.empty() ? nullptr : sizes.data();
  }
  std::size_t in_bytes(std::size_t count, const char* argument) const;
  void add(std::size_t first, std::size_t count);
  void place();
  void allocate_copy(std::size_t bytes);
  template <class Move>
  void for_each_block(const Move& move) const;

  Elements elements_;
  void* original_;
  std::vector<Block> blocks_;
  std::vector<std::size_t> counts_;
  std::vector<std::size_t> displacements_;
  std::size_t bytes_ = 0;
  void* copy_ = nullptr;
  bool private_copy_ = false;  // of malloc, not in the arena
  void* data_;
};

}  // namespace ropewalk::collectives
