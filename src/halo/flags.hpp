// The flags of one halo on one rank: lines in its arena that its neighbours map.
//
// One writer a line at a time, 128 bytes apart; 64-bit numbers of exchanges, which only grow.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ropewalk::halo {

struct alignas(128) FlagLine {  // adjacent lines are prefetched in pairs on x86
  std::atomic<std::uint64_t> exchange{0};
};

// In place of a number in `ready`: the owner has given up and will not come any more.
inline constexpr std::uint64_t withdrawn = UINT64_MAX;

// ready():  written by the owner: what it sends in this exchange may be read.
// done(n):  written by the neighbour towards direction n, into the owner's block: it has read it.
// An owner that has seen all its done lines is alone with its block and its data, so that they can
// go without anybody being asked.
class FlagBlock {
 public:
  FlagBlock() = default;
  explicit FlagBlock(int directions);  // Error(memory) where the arena is full
  FlagBlock(FlagBlock&& other) noexcept;
  FlagBlock& operator=(FlagBlock&& other) noexcept;
  ~FlagBlock();

  // Neighbours may still write into it: the memory is given up.
  void abandon() noexcept { lines_ = nullptr; }

  std::size_t offset() const noexcept;  // in the arena of the process
  FlagLine& ready() const noexcept { return lines_[0]; }
  FlagLine& done(int direction) const noexcept { return lines_[1 + direction]; }

  // The lines of a block that begins at `block`, another rank's.
  static FlagLine& ready_of(std::byte* block) noexcept { return line(block, 0); }
  static FlagLine& done_of(std::byte* block, int direction) noexcept {
    return line(block, 1 + direction);
  }

 private:
  static FlagLine& line(std::byte* block, int index) noexcept {
    return reinterpret_cast<FlagLine*>(block)[index];
  }
  FlagLine* lines_ = nullptr;
};

}  // namespace ropewalk::halo
