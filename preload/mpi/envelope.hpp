// What two processes share of a message: the descriptor, which goes through MPI, and the slot in
// the arena of the sender, which says how far the message is.
//
//   free -> armed            by the sender, release, before the descriptor is sent
//   armed -> claimed         by the receiver, which copies from the program's buffer
//   armed -> moving -> kept  by the sender, which has waited and copies its data to go on
//   kept -> claimed          by the receiver, which copies from that copy
//   claimed -> copied        by the receiver, release; the sender frees the slot
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "kernels/kernels.hpp"

namespace ropewalk::preload::messages {

// Random, of one process: what carries it was made for that process by a rank of its job.
using Key = std::array<std::uint64_t, 2>;

struct MessageDescriptor {
  Key key;               // of the receiver
  std::uint64_t inode;   // of the sender's arena
  std::uint64_t sender;  // in MPI_COMM_WORLD
  std::uint64_t slot;
  std::uint64_t serial;
  std::uint64_t length;
  std::uint64_t checksum;
};
// MPICH refuses bytes for a receive type with gaps that end inside an element: all of 1, 2, 4, 8,
// 16 or 32 bytes divide this.
inline constexpr std::size_t descriptor_bytes = 64;
static_assert(sizeof(MessageDescriptor) == descriptor_bytes);
std::uint64_t checksum_of(const MessageDescriptor&) noexcept;

enum class State : std::uint32_t { free, armed, moving, kept, claimed, copied };

inline constexpr std::uint64_t nowhere = ~std::uint64_t{0};

struct alignas(128) EnvelopeSlot {
  std::atomic<State> state{State::free};
  std::int32_t destination = -1;  // in MPI_COMM_WORLD
  bool acknowledged = false;      // the receiver of an armed slot tells the sender by MPI, too
  std::uint64_t serial = 0;
  std::uint64_t length = 0;
  std::uint64_t place = 0;       // of the program's buffer, in the sender's arena
  std::uint64_t kept_place = 0;  // of the copy; released with `kept`
  // Written by the receiver before it claims: where the data goes in its own arena, so that a
  // sender that waits can help, or nowhere; and how much is copied at a time.
  std::uint64_t target = nowhere;
  std::uint64_t piece = 0;
  // Pieces begun, and copied: each on its own line, as both processes add to them.
  alignas(128) std::atomic<std::uint64_t> begun{0};
  alignas(128) std::atomic<std::uint64_t> copied{0};
};

// ---- of the sender

// Fills a free slot. The slot's descriptor may be sent afterwards.
void arm(EnvelopeSlot&, std::int32_t destination, std::uint64_t serial, std::uint64_t place,
         std::uint64_t length, bool acknowledged) noexcept;
// The sender copies pieces as well, if the receiver has said where to. `base`: of the receiver's
// arena, as the sender maps it.
void help(EnvelopeSlot&, std::byte* base, const std::byte* data, kernels::Stores) noexcept;
// Whether the sender has taken back the right to move its data: then settle() must follow.
bool begin_move(EnvelopeSlot&) noexcept;
void end_move(EnvelopeSlot&, std::uint64_t kept_place) noexcept;

// ---- of the receiver

struct Claim {
  std::uint64_t place;  // in the sender's arena
  bool kept;            // the sender has gone on
};
// Says where the data goes, and claims the slot. `gone`: asked while the sender moves its data;
// true when it has died. Nothing where the slot is not on its way to anybody.
template <class Gone>
std::optional<Claim> claim(EnvelopeSlot& slot, std::uint64_t target, std::uint64_t piece,
                           Gone gone) {
  slot.target = target;
  slot.piece = piece;
  for (;;) {
    // Acquire pairs with the releases of arm() and end_move().
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
// Copies pieces until all are copied, by whomever. `gone` as above: then the rest is copied here.
void copy_pieces(EnvelopeSlot&, std::byte* to, const std::byte* from, kernels::Stores) noexcept;
bool all_copied(const EnvelopeSlot&) noexcept;

}  // namespace ropewalk::preload::messages
