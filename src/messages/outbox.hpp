// The messages of this rank to one peer of its node: the writing end of their ring.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "messages/board.hpp"
#include "os/relax.hpp"

namespace ropewalk::messages {

class Outbox {
 public:
  // `own`: this rank's line for the peer; `peer`: the peer's line for this rank.
  Outbox(PeerLine& own, const PeerLine& peer) noexcept : own_(&own), peer_(&peer) {}

  // Tells whether a message with so many bytes of slot memory fits. Makes the ring at the first
  // call: Error(memory) where the arena is full.
  bool has_room(std::size_t slot_bytes) {
    if (ring_ == nullptr) [[unlikely]] {
      make_ring();
    }
    // The lap before this one has been taken, as far as this rank knows.
    if (next_ - taken_ > cells || !fits(slot_bytes)) [[unlikely]] {
      return has_room_now(slot_bytes);
    }
    return true;
  }

  // Each of the three writes one message; there must be room.
  void put_in_cell(const void* data, std::size_t bytes, int tag) noexcept {
    Cell& cell = begin(tag, Carriage::cell, bytes);
    if (bytes != 0) std::memcpy(cell.payload, data, bytes);
    end(cell);
  }
  void put_in_slot(const void* data, std::size_t bytes, int tag) noexcept;
  void put_offer(const Offer& offer, std::size_t bytes, int tag) noexcept {
    Cell& cell = begin(tag, Carriage::offer, bytes);
    std::memcpy(cell.payload, &offer, sizeof offer);
    end(cell);
  }

  // Returns the ring of this process, to be given back when the peer looks at it no more; null
  // where it was never made.
  MessageRing* ring() const noexcept { return ring_; }

 private:
  Cell& begin(int tag, Carriage carriage, std::size_t bytes) noexcept {
    Cell& cell = ring_->cell[next_ % cells];
    cell.tag = tag;
    cell.carriage = carriage;
    cell.bytes = bytes;
    return cell;
  }
  void end(Cell& cell) noexcept {
    slot_end_[next_ % cells] = slot_used_;
    // Pairs with the acquire in Inbox::head() of the peer.
    cell.number.store(next_, std::memory_order_release);
    ++next_;
    // The peer has the next line, which was read a lap ago. It is fetched while the answer to this
    // message is under way.
    os::prefetch_for_writing(&ring_->cell[next_ % cells]);
  }
  std::size_t at(std::size_t slot_bytes) const noexcept;
  bool fits(std::size_t slot_bytes) const noexcept {
    return slot_bytes == 0 || at(slot_bytes) + slot_bytes - slot_freed_ <= slot_memory_bytes;
  }
  bool has_room_now(std::size_t slot_bytes) noexcept;
  void make_ring();

  PeerLine* own_;
  const PeerLine* peer_;
  MessageRing* ring_ = nullptr;
  std::uint64_t next_ = 1;   // message
  std::uint64_t taken_ = 0;  // messages that the peer is known to have taken
  // Counts slot memory by bytes since the beginning; behind its end it goes on at the start.
  std::size_t slot_used_ = 0;
  std::size_t slot_freed_ = 0;
  std::array<std::size_t, cells> slot_end_{};  // slot_used_ behind the message of each cell
};

}  // namespace ropewalk::messages
