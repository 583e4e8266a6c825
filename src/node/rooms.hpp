// Rooms: memory for copies of private buffers that the others read in one call. A room is kept, as
// a slot is, until its readers have left the call, and nobody need wait for them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "node/control.hpp"
#include "node/slots.hpp"
#include "node/waits.hpp"

namespace ropewalk::node {

class Rooms {
 public:
  Rooms(const ControlBlocks& blocks, Slots& slots, Waits& waits) noexcept
      : blocks_(blocks), slots_(slots), waits_(waits) {}

  // Returns room for a copy of so many bytes that the others read in the call of the last claim().
  // There is one in each call. May throw Error(memory).
  std::byte* take(std::size_t bytes);
  // Each of the two halves of the rooms has so many bytes at first. It is more than the first
  // cache, so that a sender that is faster than its readers writes several copies ahead; it is less
  // than the second, where the lines of both halves stay.
  static constexpr std::size_t least_half = slot_count * (std::size_t{4} << 10);

  // Shows that so many pieces of the copy are there, for readers that follow while the rest is
  // written.
  void show_pieces(std::uint64_t number) noexcept {
    blocks_.own->pieces.store(slots_.calls() << piece_bits | number, std::memory_order_release);
    waits_.wake_sleepers();
  }
  // Waits until the rank has shown so many pieces in this call, at which it has arrived.
  void wait_for_pieces(int rank, std::uint64_t number) {
    const auto& flag = blocks_.of[rank]->pieces;
    const std::uint64_t wanted = slots_.calls() << piece_bits | number;
    // Pairs with the release in show_pieces() of that rank.
    waits_.until([&flag, wanted] { return flag.load(std::memory_order_acquire) >= wanted; });
  }
  static constexpr int piece_bits = 16;  // so many pieces a copy at most, 2^48 calls

  // What the arena has given for the halves, null for none yet. Others may read it for as long as
  // they have the team (reclamation.hpp).
  std::array<std::byte*, 2> memory() const noexcept {
    return {halves_[0].memory, halves_[1].memory};
  }

 private:
  // Rooms lie behind each other in one half, until it is full and the other is free.
  struct Half {
    std::byte* memory = nullptr;
    std::size_t bytes = 0;
    std::uint64_t last_call = 0;  // that has a room in it
  };
  static void enlarge(Half& half, std::size_t bytes);

  ControlBlocks blocks_;
  Slots& slots_;
  Waits& waits_;
  std::array<Half, 2> halves_;
  int half_ = 0;          // the one in use
  std::size_t used_ = 0;  // of its bytes
};

}  // namespace ropewalk::node
