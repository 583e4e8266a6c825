// The flags of one halo on one rank: lines in its arena that its neighbours map. Where these write
// faces into its memory, that is part of the same block.
//
// Lines are 128 bytes apart; 64-bit numbers, which only grow while the halo lives.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ropewalk::halo {

struct alignas(128) FlagLine {  // adjacent lines are prefetched in pairs on x86
  std::atomic<std::uint64_t> number{0};
};

// In place of a number: its writer has given up and will not come any more.
inline constexpr std::uint64_t withdrawn = UINT64_MAX;

// A block has these lines:
// - started(): the owner writes it. Its faces may be read and its ghosts written in this exchange.
// - claim(n): the exchange in which somebody has last begun to copy the face that comes in from
//   direction n. It is the one line with two writers, the owner and the neighbour there, who raise
//   it from n - 1 to n by compare-exchange.
// - copied(n): the exchange in which the same face was last copied, by whoever claimed it, or
//   `withdrawn` where that one could not. It is a line of its own: while the owner copies what it
//   receives, as it does most times, the claim never leaves its cache, and the neighbour looks at
//   this one.
// - left(n): the neighbour towards direction n writes it, as the last it does here in an exchange.
//   When it leaves for good it writes `withdrawn`.
class FlagBlock {
 public:
  FlagBlock() = default;
  // Throws Error(memory) where the arena is full. Face memory is zeroed by this rank, which places
  // it.
  explicit FlagBlock(int directions, std::size_t face_bytes = 0);
  FlagBlock(FlagBlock&& other) noexcept;
  FlagBlock& operator=(FlagBlock&& other) noexcept;
  ~FlagBlock();

  // Never gives the memory back, because neighbours may read it for ever.
  void abandon() noexcept { lines_ = nullptr; }
  // Neighbours may still be looking at it in `exchange`, its last. The memory goes back when all
  // have left it, at the latest when a later block is retired. This call does not wait for that.
  void retire(std::uint64_t exchange) noexcept;
  // Whether retiring would give the memory back at once.
  bool all_left(std::uint64_t exchange) const noexcept;

  std::size_t offset() const noexcept;  // in the arena of the process
  std::byte* faces() const noexcept {   // behind the lines, aligned as they are
    return reinterpret_cast<std::byte*>(&line(block(), 1 + 3 * directions_));
  }
  FlagLine& started() const noexcept { return lines_[0]; }
  FlagLine& claim(int direction) const noexcept { return claim_of(block(), direction); }
  FlagLine& copied(int direction) const noexcept { return copied_of(block(), direction); }
  // There is a neighbour in this direction, and it will leave.
  void expect(int direction) const noexcept;

  // Return the lines of a block that begins at `block`, this or another rank's.
  static FlagLine& started_of(std::byte* block) noexcept { return line(block, 0); }
  static FlagLine& claim_of(std::byte* block, int direction) noexcept {
    return line(block, 1 + 3 * direction);
  }
  static FlagLine& copied_of(std::byte* block, int direction) noexcept {
    return line(block, 2 + 3 * direction);
  }
  static FlagLine& left_of(std::byte* block, int direction) noexcept {
    return line(block, 3 + 3 * direction);
  }

 private:
  static FlagLine& line(std::byte* block, int index) noexcept {
    return reinterpret_cast<FlagLine*>(block)[index];
  }
  std::byte* block() const noexcept { return reinterpret_cast<std::byte*>(lines_); }

  FlagLine* lines_ = nullptr;
  int directions_ = 0;
};

}  // namespace ropewalk::halo
