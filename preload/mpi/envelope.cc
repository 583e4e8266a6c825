#include "envelope.hpp"

#include <algorithm>

namespace ropewalk::preload::messages {

namespace {

std::uint64_t pieces_of(const EnvelopeSlot& slot) noexcept {
  return (slot.length + slot.piece - 1) / slot.piece;
}

}  // namespace

// The checksum chains the finalizer of splitmix64 over all fields.
std::uint64_t checksum_of(const MessageDescriptor& descriptor) noexcept {
  std::uint64_t hash = 0;
  for (const std::uint64_t word :
       {descriptor.key[0], descriptor.key[1], descriptor.inode, descriptor.sender, descriptor.slot,
        descriptor.serial, descriptor.length}) {
    hash = (hash ^ word) + 0x9e3779b97f4a7c15ULL;
    hash = (hash ^ hash >> 30) * 0xbf58476d1ce4e5b9ULL;
    hash = (hash ^ hash >> 27) * 0x94d049bb133111ebULL;
    hash ^= hash >> 31;
  }
  return hash;
}

void arm(EnvelopeSlot& slot, std::int32_t destination, std::uint64_t serial, std::uint64_t place,
         std::uint64_t length, bool acknowledged) noexcept {
  slot.destination.store(destination, std::memory_order_relaxed);
  slot.acknowledged = acknowledged;
  slot.serial = serial;
  slot.length = length;
  slot.place = place;
  slot.target = nowhere;
  slot.begun.store(0, std::memory_order_relaxed);
  slot.copied.store(0, std::memory_order_relaxed);
  // This release pairs with the acquire in claim().
  slot.state.store(State::armed, std::memory_order_release);
}

void help(EnvelopeSlot& slot, std::byte* base, const std::byte* data,
          kernels::Stores stores) noexcept {
  if (slot.target != nowhere) copy_pieces(slot, base + slot.target, data, stores);
}

bool begin_move(EnvelopeSlot& slot) noexcept {
  State expected = State::armed;
  return slot.state.compare_exchange_strong(expected, State::moving, std::memory_order_acq_rel);
}

void end_move(EnvelopeSlot& slot, std::uint64_t kept_place) noexcept {
  slot.kept_place = kept_place;
  // This release pairs with the acquire in claim().
  slot.state.store(State::kept, std::memory_order_release);
}

void copy_pieces(EnvelopeSlot& slot, std::byte* to, const std::byte* from,
                 kernels::Stores stores) noexcept {
  const std::uint64_t pieces = pieces_of(slot);
  const std::uint64_t piece = slot.piece;
  const std::uint64_t length = slot.length;
  for (;;) {
    const std::uint64_t one = slot.begun.fetch_add(1, std::memory_order_relaxed);
    if (one >= pieces) return;
    const std::uint64_t at = one * piece;
    kernels::copy(to + at, from + at, std::min(piece, length - at), stores);
    // This release pairs with the acquire in all_copied().
    slot.copied.fetch_add(1, std::memory_order_release);
  }
}

bool all_copied(const EnvelopeSlot& slot) noexcept {
  // This acquire pairs with the releases in copy_pieces().
  return slot.copied.load(std::memory_order_acquire) == pieces_of(slot);
}

}  // namespace ropewalk::preload::messages
