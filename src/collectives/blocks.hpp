// The blocks of a call that moves bytes: one a rank.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

namespace ropewalk::collectives {

// Lengths and displacements are in bytes, from the beginning of a buffer.
struct Blocks {
  const std::size_t* counts;
  const std::size_t* displacements;
  bool equal = false;     // of as many bytes behind each other, as every rank knows
  bool in_place = false;  // of an alltoallv, as every rank knows

  // Says where the last byte of `ranks` blocks ends. An empty block may lie anywhere.
  std::size_t end(int ranks) const {
    std::size_t last = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      if (counts[rank] > 0) last = std::max(last, displacements[rank] + counts[rank]);
    }
    return last;
  }
};

// Describes equal blocks by one count and displacement for each rank. It allocates nothing for the
// usual number of ranks.
class EqualBlocks {
 public:
  EqualBlocks(int ranks, std::size_t bytes) {
    const auto size = static_cast<std::size_t>(ranks);
    if (size > few) more_.resize(2 * size);
    counts_ = size > few ? more_.data() : room_.data();
    displacements_ = counts_ + size;
    for (std::size_t peer = 0; peer < size; ++peer) {
      counts_[peer] = bytes;
      displacements_[peer] = peer * bytes;
    }
  }
  EqualBlocks(const EqualBlocks&) = delete;
  EqualBlocks& operator=(const EqualBlocks&) = delete;
  Blocks blocks() const noexcept { return {counts_, displacements_, true}; }

 private:
  static constexpr std::size_t few = 32;
  std::array<std::size_t, 2 * few> room_;  // not set: only what is used is written
  std::vector<std::size_t> more_;
  std::size_t* counts_;
  std::size_t* displacements_;
};

}  // namespace ropewalk::collectives
