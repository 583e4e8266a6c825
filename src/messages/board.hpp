// What the ranks of a node show each other of their messages: one block a rank, in its arena.
//
// The block of a rank has a line for each peer, and for each peer that it sends to a ring of cells.
// A cell announces one message; the n-th message to a peer uses cell n modulo the number of cells.
// Numbers begin at 1 and only grow, so nothing is ever reset.
#pragma once

#include <cstddef>
#include <cstdint>

#include "channel/peer_memory.hpp"
#include "node/control.hpp"
#include "node/flag.hpp"

namespace ropewalk::messages {

// How the bytes of a message come.
enum class Carriage : std::uint32_t {
  cell,   // in the cell
  slot,   // in the slot memory of the ring
  offer,  // they lie in the sender's buffer: the cell has an Offer
};

// A cell has two lines, which processors of the x86 family fetch together: a message of up to 40
// bytes is one line, one of up to 104 is this pair.
struct alignas(node::flag_stride) Cell {
  static constexpr std::size_t header_bytes = 24;
  static constexpr std::size_t payload_bytes = node::flag_stride - header_bytes;

  node::Flag<std::uint64_t> number;  // of the message; released last, acquired by the receiver
  node::Plain<std::int32_t> tag;
  node::Plain<Carriage> carriage;
  node::Plain<std::uint64_t> bytes;  // of the whole message
  std::byte payload[payload_bytes];  // the bytes, or where in the slot memory, or an Offer
};
static_assert(sizeof(Cell) == node::flag_stride);

// What the receiver needs to know of a sender's buffer.
struct Offer {
  channel::Reference source;
  std::uint64_t transfer;  // where the Transfer lies, in the sender's arena
  std::uint64_t number;    // of the transfer's use
};
static_assert(sizeof(Offer) <= Cell::payload_bytes);

// What one rank shows one peer. The owner alone writes it, and the peer alone reads it, but for the
// peer's note that it has left.
struct alignas(node::flag_stride) PeerLine {
  node::Flag<std::uint64_t> taken;  // messages of the peer that the owner has taken from its ring
  node::Flag<std::uint64_t> ring;   // where the owner's ring for the peer lies; 0: not made yet
  node::Flag<std::uint32_t> left;   // 1: the peer looks at this block no more
};

// The head of a rank's block; its peer lines follow.
struct alignas(node::flag_stride) Board {
  // The owner has ended its channel: nothing more comes from it, and it takes nothing more.
  node::Flag<std::uint64_t> ended;

  PeerLine* lines() noexcept { return reinterpret_cast<PeerLine*>(this + 1); }
  static constexpr std::size_t bytes_for(int ranks) noexcept {
    return sizeof(Board) + static_cast<std::size_t>(ranks) * sizeof(PeerLine);
  }
};

// A ring has so many cells: as many messages may be under way to a peer before their sender waits
// for it.
constexpr std::uint64_t cells = node::slots_unless_modelled(64);
// A ring has so much slot memory, in bytes: eight of the longest messages that go through it. It
// stays in the second cache together with its opposite.
constexpr std::size_t slot_memory_bytes = node::slots_unless_modelled(1024) * node::flag_stride;

struct MessageRing {
  Cell cell[cells];
  std::byte slot_memory[slot_memory_bytes];
};

}  // namespace ropewalk::messages
