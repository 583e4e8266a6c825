#include "collectives/copies.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/kernels.hpp"

namespace ropewalk::collectives {
namespace {

// Copies into lines that another rank has read. The string instruction takes whole lines for
// writing and fetches none of what they held: between two cores of an EPYC a copy of 64 to 256 KiB
// takes a half to a third of the time of stores that fetch the lines first, one of 8 KiB seven
// tenths. Its stores come in any order, but before the flag that is stored next.
void copy_for_others(std::byte* to, const std::byte* from, std::size_t bytes) {
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && \
    !defined(ROPEWALK_WATCHED)
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
#else
  std::memcpy(to, from, bytes);
#endif
}

// Calls move(begin, length) for the parts of [begin, end) that are copied: `unread` lies in it,
// behind it or before it.
template <class Move>
void without(Range unread, std::size_t begin, std::size_t end, Move move) {
  const std::size_t hole = std::clamp(unread.begin, begin, end);
  const std::size_t behind = std::clamp(unread.end, hole, end);
  if (hole > begin) move(begin, hole - begin);
  if (end > behind) move(behind, end - behind);
}

}  // namespace

Shown Copies::show(const void* send, std::size_t bytes, Range unread) {
  const Reference visible = memory_.visible(send, bytes);
  if (!visible.is_none() || bytes == 0) return {visible};
  if (bytes <= limits_.copied_bytes) return show_copy(send, bytes, unread);
  const Reference by_kernel = memory_.by_kernel(send, bytes);
  return by_kernel.is_none() ? show_copy(send, bytes) : Shown{by_kernel};
}

Shown Copies::show_copy(const void* send, std::size_t bytes, Range unread) {
  path_ = Path::staged;
  if (bytes > limits_.copied_bytes) {
    return {channel::PeerMemory::in_arena(whole_copy(send, bytes))};
  }
  return begin(send, bytes, bytes, unread);
}

Shown Copies::show_in_pieces(const void* send, std::size_t bytes, std::size_t limit, Range unread) {
  const Reference visible = memory_.visible(send, bytes);
  if (!visible.is_none() || bytes == 0) return {visible};
  if (bytes <= limit) return copy_in_pieces(send, bytes, limit, unread);
  const Reference by_kernel = memory_.by_kernel(send, bytes);
  return by_kernel.is_none() ? show_copy(send, bytes) : Shown{by_kernel};
}

Shown Copies::copy_in_pieces(const void* send, std::size_t bytes, std::size_t limit, Range unread) {
  if (bytes > limit) return show_copy(send, bytes, unread);
  return begin(send, bytes, piece(bytes), unread);
}

Shown Copies::postpone_in_pieces(const void* send, std::size_t bytes, std::size_t limit,
                                 Range unread) {
  const bool small = bytes > 0 && bytes <= limit && memory_.visible(send, bytes).is_none();
  if (!small) return show_in_pieces(send, bytes, limit, unread);
  return begin(send, bytes, piece(bytes), unread, true);
}

std::byte* Copies::whole_copy(const void* data, std::size_t bytes) {
  std::byte* copy = arrivals_.or_refuse([&] { return scratch_.take(bytes); });
  if (bytes > 0) kernels::copy(copy, data, bytes, kernels::Stores::temporal);
  return copy;
}

Shown Copies::begin(const void* send, std::size_t bytes, std::size_t piece, Range unread,
                    bool postponed) {
  path_ = Path::staged;
  std::byte* room = arrivals_.or_refuse([&] { return team_.rooms().take(bytes); });
  copy_ = {room, static_cast<const std::byte*>(send), bytes, piece, unread, 0, postponed};
  if (!postponed) add_piece();
  return {channel::PeerMemory::in_arena(room), Reference::none(),
          piece < bytes ? static_cast<std::uint32_t>(piece) : copied_whole, postponed ? 1U : 0U};
}

// The first piece is shown by the arrival, unless the copy was postponed.
void Copies::add_piece() noexcept {
  Copy& copy = copy_;
  if (copy.done >= copy.bytes) return;
  const std::size_t end = std::min(copy.bytes, copy.done + copy.piece);
  without(copy.unread, copy.done, end, [&](std::size_t at, std::size_t length) {
    copy_for_others(copy.to + at, copy.from + at, length);
  });
  const bool first = copy.done == 0 && !copy.postponed;
  copy.done = end;
  if (!first) team_.rooms().show_pieces((end + copy.piece - 1) / copy.piece);
}

std::size_t Copies::piece(std::size_t bytes) const noexcept {
  return std::min(bytes, limits_.piece_bytes);
}

void Copies::read_pieces(std::byte* to, int peer, const Shown& shown, std::size_t offset,
                         std::size_t bytes) {
  const std::byte* from = team_.base(peer) + shown.send.place();
  const std::size_t end = offset + bytes;
  for (std::size_t at = offset; at < end;) {
    // To the end of the piece; what is there as a whole is one.
    const std::size_t behind = at % shown.copied;
    const std::size_t length = std::min(end - at, shown.copied - behind);
    await(peer, shown, at + length);
    kernels::copy(to, from + at, length, kernels::Stores::temporal);
    to += length;
    at += length;
  }
}

bool Copies::read(void* to, int peer, const Shown& shown, std::size_t offset, std::size_t bytes,
                  kernels::Stores stores) {
  if (shown.copied == 0) return memory_.read(to, peer, shown.send + offset, bytes, stores);
  read_pieces(static_cast<std::byte*>(to), peer, shown, offset, bytes);
  return true;
}

}  // namespace ropewalk::collectives
