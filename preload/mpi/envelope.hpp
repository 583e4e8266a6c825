// Two processes share two things of a message: the descriptor, which goes through MPI, and the slot
// in the arena of the sender, which says how far the message is. A slot changes its state so:
//
//   free -> armed            by the sender, with a release, before the descriptor is sent
//   armed -> claimed         by the receiver, which copies from the program's buffer
//   armed -> moving -> kept  by the sender, which has waited and copies its data to go on
//   kept -> claimed          by the receiver, which copies from that copy
//   claimed -> copied        by the receiver, with a release; the sender frees the slot
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "kernels/kernels.hpp"
#include "node/flag.hpp"

namespace ropewalk::preload::messages {

// Each process draws a random key. A descriptor that carries it was made for that process by a rank
// of its job.
using Key = std::array<std::uint64_t, 2>;

struct MessageDescriptor {
  Key key;               // key of the receiver
  std::uint64_t inode;   // inode of the sender's arena
  std::uint64_t sender;  // its place among the node's ranks
  std::uint64_t slot;
  std::uint64_t serial;
  std::uint64_t length;
  std::uint64_t checksum;
};
// MPICH refuses a message that ends inside an element of the receive's type, where that type has
// gaps. Elements of 1, 2, 4, 8, 16 and 32 bytes all divide this length.
inline constexpr std::size_t descriptor_bytes = 64;
static_assert(sizeof(MessageDescriptor) == descriptor_bytes);
std::uint64_t checksum_of(const MessageDescriptor&) noexcept;

enum class State : std::uint32_t { free, armed, moving, kept, claimed, copied };

// This stands for a place outside the arena.
inline constexpr std::uint64_t nowhere = ~std::uint64_t{0};

// A slot is free when it is made. All else is written when it is armed, or where that is said.
struct alignas(128) EnvelopeSlot {
  node::Flag<State> state;
  // Place among the node's ranks. Other ranks read it as well, while the slot is armed anew.
  node::Flag<std::int64_t> destination;
  node::Plain<bool> acknowledged;  // the receiver of an armed slot tells the sender by MPI, too
  node::Plain<std::uint64_t> serial;
  node::Plain<std::uint64_t> length;
  node::Plain<std::uint64_t> place;       // offset of the program's buffer in the sender's arena
  node::Plain<std::uint64_t> kept_place;  // offset of the copy, written before `kept`
  // The receiver writes the next two before it claims. `target` says where the data goes in its own
  // arena, so that a sender that waits can help, or is `nowhere`; `piece` says how many bytes are
  // copied at a time.
  node::Plain<std::uint64_t> target;
  node::Plain<std::uint64_t> piece;
  // These count the pieces begun and copied. Each is on a cache line of its own, as both processes
  // add to them.
  alignas(128) node::Flag<std::uint64_t> begun;
  alignas(128) node::Flag<std::uint64_t> copied;
};

// A receiver tells all senders this, in its arena.
struct alignas(128) ReceiverNotes {
  // It probes, so that MPI may match a synchronous message before its receive has begun.
  std::atomic<bool> probes{false};
};

// ---- The sender calls these.

// Fills a free slot, whose descriptor may be sent afterwards.
void arm(EnvelopeSlot&, std::int32_t destination, std::uint64_t serial, std::uint64_t place,
         std::uint64_t length, bool acknowledged) noexcept;
// Lets the sender copy pieces as well, if the receiver has said where they go. `base` is the start
// of the receiver's arena, as the sender maps it.
void help(EnvelopeSlot&, std::byte* base, const std::byte* data, kernels::Stores) noexcept;
// Returns true where the sender has taken back the right to move its data; then end_move() must
// follow.
bool begin_move(EnvelopeSlot&) noexcept;
void end_move(EnvelopeSlot&, std::uint64_t kept_place) noexcept;

// ---- The receiver calls these.

struct Claim {
  std::uint64_t place;  // offset in the sender's arena
  bool kept;            // the sender has gone on
};
// Says where the data goes, and claims the slot. While the sender moves its data, `gone` is asked
// whether the sender has died. The result is empty where the slot's message is not under way.
template <class Gone>
std::optional<Claim> claim(EnvelopeSlot& slot, std::uint64_t target, std::uint64_t piece,
                           Gone gone) {
  slot.target = target;
  slot.piece = piece;
  for (;;) {
    // This acquire pairs with the releases of arm() and end_move().
    State state = slot.state.load(std::memory_order_acquire);
    if (state == State::armed || state == State::kept) {
      const bool kept = state == State::kept;
      if (slot.state.compare_exchange_strong(state, State::claimed, std::memory_order_acq_rel)) {
        return Claim{kept ? slot.kept_place : slot.place, kept};
      }
    } else if (state != State::moving) {
      return std::nullopt;
    } else if (gone()) {
      return Claim{slot.place, true};
    }
  }
}
// Copies pieces until none is left to begin. The other process may still copy the pieces that it
// has begun.
void copy_pieces(EnvelopeSlot&, std::byte* to, const std::byte* from, kernels::Stores) noexcept;
// Returns true where all pieces are copied, whichever process copied them.
bool all_copied(const EnvelopeSlot&) noexcept;

}  // namespace ropewalk::preload::messages
