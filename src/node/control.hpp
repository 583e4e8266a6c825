// The control block of one rank in one team: its flags and slots, in its own arena.
//
// One writer a line: but for rank 0's sleepers and the notes of those that have left, only the
// owner writes its block; all ranks of the team read it. Sequence numbers are 64-bit, start at 1
// and only grow, so nothing is ever reset.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "node/flag.hpp"
#include "node/sleepers.hpp"

namespace ropewalk::node {

// Adjacent lines are prefetched in pairs on x86, so two writers stay 128 bytes apart.
constexpr std::size_t flag_stride = 128;

// What a rank shows when it arrives at a call. A payload of up to 40 bytes shares the flag's line;
// a larger one begins on the next line, so that no vector straddles two.
struct alignas(flag_stride) Slot {
  // The stride is more than a page, and no multiple of one: slots at multiples of a page would all
  // fall on the same few sets of the first cache, and every call would miss it.
  static constexpr std::size_t bytes = 4096 + 1024 + flag_stride;
  static constexpr std::size_t line_bytes = 64;
  static constexpr std::size_t header_bytes = 24;
  static constexpr std::size_t beside_flag_bytes = line_bytes - header_bytes;
  static constexpr std::size_t payload_bytes = bytes - line_bytes;  // wherever it begins

  // Says where a payload of `length` bytes lies.
  std::byte* place(std::size_t length) noexcept {
    return length <= beside_flag_bytes ? payload : payload + beside_flag_bytes;
  }
  const std::byte* place(std::size_t length) const noexcept {
    return length <= beside_flag_bytes ? payload : payload + beside_flag_bytes;
  }

  Flag<std::uint64_t> sequence;  // released last, acquired by every reader
  Plain<std::uint64_t> call;     // what is called, packed (collectives/arrivals.hpp)
  Plain<std::uint64_t> count;
  std::byte payload[bytes - header_bytes];
};
static_assert(sizeof(Slot) == Slot::bytes);

// A slot is written again `slot_count` calls later; Slots::claim makes sure that its readers are
// gone. So far may a rank that waits for nobody, as the sender of a small gather, run ahead of its
// readers.
constexpr std::uint64_t slot_count = slots_unless_modelled(16);

struct alignas(flag_stride) Control {
  // The last call that this rank has arrived at. Stored at every call, read only by a rank that has
  // gone round its slots: the line stays where it is written.
  Flag<std::uint64_t> arrived;
  // Phases of bulk calls that this rank has finished.
  alignas(flag_stride) Flag<std::uint64_t> phase;
  // This is the last phase in which this rank could not do its part, 0 for none; it is written
  // before the phase.
  std::atomic<std::uint64_t> failed;
  // Others find this rank's staging area here, as an offset in its arena; it is written before an
  // arrival.
  alignas(flag_stride) Flag<std::uint64_t> staging;
  // Tells how much of this rank's copy is there: the call, and the number of its pieces
  // (Rooms::show_pieces).
  alignas(flag_stride) Flag<std::uint64_t> pieces;
  // Only those of rank 0 are used.
  alignas(flag_stride) Sleepers sleepers;
  Slot slot[slot_count];

  // Behind the block: one a rank, 1 when that rank has left the team and looks at this block no
  // more. A rank writes its own.
  using Left = std::atomic<std::uint8_t>;
  static std::size_t bytes_for(int ranks) noexcept {
    return sizeof(Control) + static_cast<std::size_t>(ranks) * sizeof(Left);
  }
  Left& left(int rank) noexcept { return reinterpret_cast<Left*>(this + 1)[rank]; }
};

// These are the control blocks of a team as one of its ranks sees them: its own, which it writes,
// and those of all by rank, which it reads. The parts of a team (slots, phases, rooms) hold a copy
// each.
struct ControlBlocks {
  int rank;
  Control* own;
  std::span<Control* const> of;

  int size() const noexcept { return static_cast<int>(of.size()); }
};

}  // namespace ropewalk::node
