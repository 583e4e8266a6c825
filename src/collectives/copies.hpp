// What the ranks of a bulk call tell each other about their buffers, and the copies that they make
// of private ones. Small copies lie in the team's rooms, where they are kept until their readers
// have left the call, so that their writer does not wait; readers read the first pieces while the
// others are written.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "channel/peer_memory.hpp"
#include "collectives/arrivals.hpp"
#include "collectives/range.hpp"
#include "collectives/scratch_memory.hpp"
#include "node/team.hpp"
#include "ropewalk/collectives.hpp"
#include "tuning/limits.hpp"

namespace ropewalk::collectives {

using channel::Reference;
using tuning::Limits;

// What a rank shows of its buffers when a bulk call begins; fits the flag's line.
struct Shown {
  Reference send = Reference::none();
  Reference receive = Reference::none();
  // Where this is not 0, `send` is a copy that is kept until its readers have left the call, and
  // nobody waits for them. So many of its bytes were there at the arrival; the rest follows in
  // pieces of the same length.
  std::uint32_t copied = 0;
  // 1: nothing of the copy was there at the arrival. Its owner makes it only for those whose
  // receive buffers it does not see.
  std::uint32_t postponed = 0;
};
constexpr std::uint32_t copied_whole = ~std::uint32_t{0};
static_assert(sizeof(Shown) <= node::Slot::beside_flag_bytes);
// Whether the owner of a block writes it where it belongs: where it sees the receiver's buffer, and
// the receiver would have the kernel read the block, or read a copy of it, which takes longer. Both
// ranks know it from what both have shown.
constexpr bool pushes(const Shown& owner, const Shown& receiver) noexcept {
  return (owner.send.is_by_kernel() || owner.postponed != 0) && receiver.receive.is_visible();
}
// Stands for a buffer from which nothing is read, because its owner writes into those of the
// receivers.
constexpr Reference pushed_reference = Reference::none(2);
// Stands for a buffer from which nothing is read, because the data lies in the slot.
constexpr Reference inlined_reference = Reference::none(1);

class Copies {
 public:
  // `path` becomes staged where a buffer is copied.
  Copies(node::Team& team, Arrivals& arrivals, channel::PeerMemory& memory, ScratchMemory& scratch,
         const Limits& limits, Path& path) noexcept
      : team_(team),
        arrivals_(arrivals),
        memory_(memory),
        scratch_(scratch),
        limits_(limits),
        path_(path) {}

  // ---- before the arrival. A rank without memory for a copy refuses the call.

  // Makes a send buffer readable for the others: mapped as it is, else by the kernel or as a copy.
  // A part that no other rank reads, such as this rank's own block, may be left out of a copy.
  Shown show(const void* send, std::size_t bytes, Range unread = {0, 0});
  // A copy made readable for the others, for a buffer that the call overwrites.
  Shown show_copy(const void* send, std::size_t bytes, Range unread = {0, 0});
  // As show() and show_copy(), but copies of up to `limit` bytes are made in pieces: only the first
  // piece is there at the arrival. After it the functions below add what is missing.
  Shown show_in_pieces(const void* send, std::size_t bytes, std::size_t limit,
                       Range unread = {0, 0});
  Shown copy_in_pieces(const void* send, std::size_t bytes, std::size_t limit,
                       Range unread = {0, 0});
  // As show_in_pieces(), but a copy in pieces is postponed until it is known who needs it.
  Shown postpone_in_pieces(const void* send, std::size_t bytes, std::size_t limit,
                           Range unread = {0, 0});
  // A copy in this rank's arena that lasts until the end of the call, for which all ranks wait.
  std::byte* whole_copy(const void* data, std::size_t bytes);

  // ---- after the arrival

  void add_piece() noexcept;  // nothing where all are there
  // This is for a rank that reads others' pieces between writing its own. Where ranks share cores a
  // wait costs a time slice, so it adds all pieces at once.
  void add_ahead() noexcept { team_.waits().crowded() ? add_rest() : add_piece(); }
  void add_until(std::size_t bytes) noexcept {
    while (copy_.done < std::min(bytes, copy_.bytes)) add_piece();
  }
  void add_rest() noexcept { add_until(copy_.bytes); }
  // Nothing more is added: the buffer may be gone at the next call.
  void forget() noexcept { copy_ = {}; }

  // Returns the bytes of a piece of a buffer of so many bytes.
  std::size_t piece(std::size_t bytes) const noexcept;
  // Waits until the first `bytes` of another rank's copy are written.
  void await(int peer, const Shown& shown, std::size_t bytes) {
    if (shown.copied == 0 || (bytes <= shown.copied && shown.postponed == 0)) return;
    team_.rooms().wait_for_pieces(peer, (bytes + shown.copied - 1) / shown.copied);
  }
  // Reads from another rank's send buffer or from its copy; false where the kernel refuses.
  bool read(void* to, int peer, const Shown& shown, std::size_t offset, std::size_t bytes,
            kernels::Stores stores);

 private:
  Shown begin(const void* send, std::size_t bytes, std::size_t piece, Range unread,
              bool postponed = false);
  void read_pieces(std::byte* to, int peer, const Shown& shown, std::size_t offset,
                   std::size_t bytes);

  node::Team& team_;
  Arrivals& arrivals_;
  channel::PeerMemory& memory_;
  ScratchMemory& scratch_;
  const Limits& limits_;
  Path& path_;
  struct Copy {
    std::byte* to;
    const std::byte* from;
    std::size_t bytes;
    std::size_t piece;
    Range unread;
    std::size_t done;
    bool postponed;
  };
  Copy copy_{};  // the one under way
};

}  // namespace ropewalk::collectives
