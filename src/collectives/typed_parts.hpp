// Parts of any datatype on their way between the ranks of a node, for collectives where each part
// has a type of its own. The sender shows in its slot where its parts lie; each reader copies its
// part from there to where it belongs, with no packed bytes between.
//
// A part is packed all the same where all of a rank's parts fit into its slot, where the others do
// not see its memory, and where nobody but MPI knows how its type is laid out.
#pragma once

#include <cstddef>
#include <span>

#include "collectives/engine.hpp"
#include "collectives/pattern.hpp"

namespace ropewalk::collectives {

// Where the parts that a call receives are put before MPI unpacks them: those whose type nobody
// else knows. It is memory of the call.
class Landings {
 public:
  // Bytes of memory for these. Part `left_out` stays as it is; -1: none does.
  static std::size_t bytes(std::span<const TypedPart> receives) noexcept;
  Landings(std::span<const TypedPart> receives, std::byte* memory, int left_out) noexcept
      : receives_(receives), memory_(memory), left_out_(left_out) {}
  // Null for a part that is copied straight to its place.
  std::byte* of(std::size_t part) const noexcept;
  void unpack() const;

 private:
  std::span<const TypedPart> receives_;
  std::byte* memory_;
  int left_out_;
};

struct ShownParts {
  Shown shown;          // goes to the front of the slot
  std::size_t bytes;    // of the slot that are written, with it
  std::byte* landings;  // memory of the call
};
// The parts that a slot has room for.
constexpr std::size_t most_parts = (node::Slot::payload_bytes - sizeof(Shown)) / 16;

// Writes everything but Shown into the claimed slot, and takes memory for the call; a rank without
// memory refuses the call. With `overwritten` the call stores where its parts lie, so that they are
// copied first. Part `left_out` is for nobody; -1: none is.
ShownParts show_parts(Engine&, node::Slot& own, std::span<const TypedPart> sends, bool overwritten,
                      int left_out, std::size_t landing_bytes);

enum class Taken { yes, unreadable, of_other_length };
// Copies a part that a rank shows to where it belongs, or to a landing. Sets the engine's path.
Taken take_part(Engine&, int peer, const node::Slot&, std::size_t part, const TypedPart& to,
                std::byte* landing);
// The part that a rank sends to itself. Both types are known.
void copy_part(Engine&, const TypedPart& from, const TypedPart& to);

}  // namespace ropewalk::collectives
