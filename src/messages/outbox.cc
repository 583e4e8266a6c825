#include "messages/outbox.hpp"

#include <new>

#include "kernels/kernels.hpp"
#include "ropewalk/memory.hpp"

namespace ropewalk::messages {
namespace {

// Slots begin on a line.
constexpr std::size_t line_bytes = 64;

}  // namespace

// Says where the next slot begins: no slot goes around the end.
std::size_t Outbox::at(std::size_t slot_bytes) const noexcept {
  const std::size_t begin = (slot_used_ + line_bytes - 1) / line_bytes * line_bytes;
  const std::size_t left = slot_memory_bytes - begin % slot_memory_bytes;
  return slot_bytes <= left ? begin : begin + left;
}

bool Outbox::has_room_now(std::size_t slot_bytes) noexcept {
  // Pairs with the release in Inbox::pop() of the peer, which has read what it has taken.
  taken_ = peer_->taken.load(std::memory_order_acquire);
  if (next_ - taken_ > cells) return false;  // the cell of the last one taken is in use again
  if (taken_ != 0) slot_freed_ = slot_end_[taken_ % cells];
  return fits(slot_bytes);
}

void Outbox::put_in_slot(const void* data, std::size_t bytes, int tag) noexcept {
  Cell& cell = begin(tag, Carriage::slot, bytes);
  const std::size_t begin = at(bytes);
  const std::uint64_t place = begin % slot_memory_bytes;
  kernels::copy(ring_->slot_memory + place, data, bytes, kernels::Stores::temporal);
  std::memcpy(cell.payload, &place, sizeof place);
  slot_used_ = begin + bytes;
  end(cell);
}

void Outbox::make_ring() {
  void* memory = Arena::process().allocate(sizeof(MessageRing), 4096);
  std::memset(memory, 0, sizeof(MessageRing));
  ring_ = new (memory) MessageRing;
  // Pairs with the acquire in Inbox::open() of the peer. No block of an arena begins at 0 bytes
  // behind the board, but one may begin at offset 0: 1 is added.
  own_->ring.store(Arena::process().offset(memory) + 1, std::memory_order_release);
}

}  // namespace ropewalk::messages
