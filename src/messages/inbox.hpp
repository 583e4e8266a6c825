// The messages of one peer of the node to this rank: the reading end of their ring.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "messages/board.hpp"

namespace ropewalk::messages {

class Inbox {
 public:
  // `own`: this rank's line for the peer; `peer`: the peer's line for this rank; `base`: of the
  // peer's arena, as it is mapped here.
  Inbox(PeerLine& own, const PeerLine& peer, const std::byte* base) noexcept
      : own_(&own), peer_(&peer), base_(base) {}

  // Returns the first message that has come and was not taken; null: none.
  const Cell* head() noexcept {
    if (ring_ == nullptr && !open()) return nullptr;
    const Cell& cell = ring_->cell[next_ % cells];
    // Pairs with the release in Outbox::end() of the peer.
    return cell.number.load(std::memory_order_acquire) == next_ ? &cell : nullptr;
  }
  // Returns the bytes of such a message that came in its cell or its slot.
  const std::byte* bytes_of(const Cell& cell) const noexcept {
    if (cell.carriage == Carriage::cell) return cell.payload;
    std::uint64_t place = 0;
    std::memcpy(&place, cell.payload, sizeof place);
    return ring_->slot_memory + place;
  }
  // The head has been read: its sender may write there again.
  void pop() noexcept {
    // Pairs with the acquire in Outbox::has_room_now() of the peer.
    own_->taken.store(next_, std::memory_order_release);
    ++next_;
  }
  // Whether a message has come behind the head. Only a hint, which pairs with nothing.
  bool has_more() const noexcept {
    return ring_ != nullptr &&
           ring_->cell[(next_ + 1) % cells].number.load(std::memory_order_relaxed) == next_ + 1;
  }
  // Whether half of the cells have come and were not taken: their sender will soon wait.
  bool is_half_full() noexcept {
    if (ring_ == nullptr && !open()) return false;
    const std::uint64_t ahead = next_ + cells / 2;
    return ring_->cell[ahead % cells].number.load(std::memory_order_relaxed) == ahead;
  }
  // Whether what has come and was not taken may keep its sender from sending more. A message of up
  // to half the slot memory finds no room only where more than half is in use. A message that did
  // not fit before the end of the memory leaves a gap there that is shorter than itself, so that
  // more than a quarter of the memory is messages; a little less, as each begins on a new line.
  // That holds where no message is longer than a quarter: beside longer gaps a short one is enough.
  bool slots_fill(std::size_t longest) noexcept {
    if (ring_ == nullptr && !open()) return false;
    const std::size_t enough = longest <= slot_memory_bytes / 4 ? slot_memory_bytes * 3 / 16 : 1;
    std::size_t bytes = 0;
    for (std::uint64_t number = next_; bytes < enough; ++number) {
      const Cell& cell = ring_->cell[number % cells];
      // As in head().
      if (cell.number.load(std::memory_order_acquire) != number) return false;
      if (cell.carriage == Carriage::slot) bytes += cell.bytes;
    }
    return true;
  }

 private:
  bool open() noexcept {
    // Pairs with the release in Outbox::make_ring() of the peer.
    const std::uint64_t place = peer_->ring.load(std::memory_order_acquire);
    if (place == 0) return false;
    ring_ = reinterpret_cast<const MessageRing*>(base_ + (place - 1));
    return true;
  }

  PeerLine* own_;
  const PeerLine* peer_;
  const std::byte* base_;
  const MessageRing* ring_ = nullptr;
  std::uint64_t next_ = 1;
};

}  // namespace ropewalk::messages
