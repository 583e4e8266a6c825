// The history tells whether blocks of a size are written whole, as seen so far: then their pages
// may be made at once, as huge pages, which costs less than a page fault for each 4 KiB. Blocks of
// a size that is not always written whole, such as sparse tables and stacks, never are.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "memory/private_copy.hpp"

namespace ropewalk::memory {

class TouchHistory {
 public:
  static constexpr std::size_t least = std::size_t{2} << 20;  // smaller blocks are not followed

  // The block got its pages by first touch.
  void handed_out(Extent block) noexcept;
  // To be called when the block is about to be freed, or another of its size is asked for: looks
  // which of its pages are present (mincore of a few, 2 us). It is called once for each block.
  void look_at(const std::byte* base, Extent block) noexcept;
  // Returns the last one of that size that nobody has looked at; bytes: 0 for none.
  Extent last(std::size_t bytes) const noexcept;
  bool expects_whole(std::size_t bytes) const noexcept;

 private:
  struct Size {
    Extent last{0, 0};
    std::uint8_t whole = 0;  // in succession
  };
  static std::size_t index(std::size_t bytes) noexcept;

  static constexpr std::uint8_t evidence = 2;
  std::array<Size, std::size_t{4} * 64> sizes_{};  // four sizes an octave
};

}  // namespace ropewalk::memory
