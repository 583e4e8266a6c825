// One message whose bytes go straight from the sender's buffer to the receiver's, or in pieces
// through a buffer of the pair.
//
// The sender offers (Offer, in a cell), the receiver answers where its buffer lies and how the
// bytes go, the two copy, and the receiver says that the message is complete. That is the
// write-based rendezvous of Potluri et al. (2013), but either side may copy, or both.
//
// The bytes are in pieces of one length, which are claimed before they are copied. Where both copy,
// the receiver claims from the front and the sender from the back, half of what is left at a time:
// two that are there end together, and a sender that computes leaves all of it to the receiver. In
// a pipeline the sender claims piece by piece from the front. There, and where the sender should
// copy all, a receiver that nothing comes to claims the rest and has the kernel read it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "channel/device_memory.hpp"
#include "channel/peer_memory.hpp"
#include "node/control.hpp"
#include "node/flag.hpp"

namespace ropewalk::messages {

// Who copies, as the receiver answers.
enum class Way : std::uint32_t { receiver, sender, both, pipeline };

// What a copy has failed of.
enum class Failure : std::uint32_t { none, of_kernel, of_device };

// Both ranks see the transfer, which lies in the sender's arena. It is used again and again, each
// time with the next number; `state` holds that number and one of the states below.
struct alignas(node::flag_stride) Transfer {
  // The receiver writes it, but for `withdrawn`. It goes from offered to answered or to withdrawn
  // by compare-exchange, since the two ranks may do it at the same time.
  node::Flag<std::uint64_t> state;
  // The answer, written before `answered` is released.
  node::Plain<Way> way;
  node::Plain<std::uint32_t> pieces;
  node::Plain<std::uint64_t> piece_bytes;
  node::Plain<channel::Reference> destination;
  // These pieces nobody has claimed: the first is in the high half, the end in the low half. They
  // are reset before the answer is released.
  alignas(node::flag_stride) node::Flag<std::uint64_t> unclaimed;
  // Counts the pieces that the sender has copied: to their place, or, from the front on, into the
  // buffer of the pair.
  alignas(node::flag_stride) node::Flag<std::uint64_t> sent;
  // A Failure of the sender's copies, written before `sent` is released; or of_device of the
  // receiver's, written before the state `refused` is.
  node::Plain<std::uint32_t> failed;
  node::Plain<std::uint64_t> buffer;  // of a pipeline, in the sender's arena; before `sent`, too
  // Counts the pieces of a pipeline that the receiver has copied out.
  alignas(node::flag_stride) node::Flag<std::uint64_t> received;
  // Of a source in device memory, which the offer names so; written before the offer is released.
  channel::DeviceSource device;
  char failure[256];  // of a device, in words; written as `failed` is
};

namespace state {
enum : std::uint64_t { offered, answered, withdrawn, complete, refused };
constexpr std::uint64_t of(std::uint64_t number, std::uint64_t what) noexcept {
  return number << 3 | what;
}
constexpr std::uint64_t what(std::uint64_t value) noexcept { return value & 7; }
}  // namespace state

// A pipeline has so many pieces under way: the sender fills one while the receiver empties another,
// and two more let the slower of them be late.
inline constexpr std::uint64_t pipeline_depth = node::slots_unless_modelled(4);

// A run of pieces.
struct Pieces {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

constexpr std::uint64_t packed(std::uint32_t first, std::uint32_t end) noexcept {
  return std::uint64_t{first} << 32 | end;
}
enum class End : std::uint8_t { front, back };

// Claims half of what is left, at least one piece and at most so many; none where nothing is left.
// No order is needed: what is copied was released by the offer and the answer.
inline Pieces claim(node::Flag<std::uint64_t>& unclaimed, End from,
                    std::uint32_t most = UINT32_MAX) noexcept {
  std::uint64_t seen = unclaimed.load(std::memory_order_relaxed);
  while (true) {
    const auto first = static_cast<std::uint32_t>(seen >> 32);
    const auto end = static_cast<std::uint32_t>(seen);
    if (first == end) return {};
    const std::uint32_t count = std::min(most, (end - first + 1) / 2);
    const bool front = from == End::front;
    const std::uint64_t rest = front ? packed(first + count, end) : packed(first, end - count);
    if (unclaimed.compare_exchange_weak(seen, rest, std::memory_order_relaxed)) {
      return {front ? first : end - count, count};
    }
  }
}

}  // namespace ropewalk::messages
