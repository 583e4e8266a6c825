// The parts of an exchange by messages before it becomes a plan: messages, and the copies around
// them. Copies between faces of one rank are the same for every carrier.
#pragma once

#include <vector>

#include "halo/links.hpp"
#include "kernels/strided_copy.hpp"
#include "ropewalk/halo.hpp"
#include "ropewalk/memory.hpp"

namespace ropewalk::halo {

// How the messages of this halo are told from those of others, and dealt to lanes.
struct Labels {
  int first_tag = 0;   // tag of direction 0
  int lanes = 1;       // of the endpoints
  int directions = 0;  // numbers of `Links` in use

  int tag(int direction) const noexcept { return first_tag + direction; }
  // There is one lane for each direction. Where lanes are left over, large messages are split over
  // all of them.
  int lane(int direction) const noexcept { return lanes > directions ? -1 : direction % lanes; }
};

struct Draft {
  Buffer<std::byte> staging;    // packed messages, on the pages of the process arena
  Buffer<std::byte> rehearsed;  // in a rehearsal: what is not packed, in place of the caller's
  std::vector<kernels::StridedCopy> packs;    // field to staging, before the messages start
  std::vector<kernels::StridedCopy> unpacks;  // staging to field, after the messages arrived
  std::vector<Message> messages;

  // Whether the message lies in `staging`, not in the caller's memory.
  bool staged(const Message&) const noexcept;
};

Draft draft_faces(const Links&, const FacePackets&, const Labels&);

// Messages of one field whose region is one run of bytes are sent and received in place; all others
// are packed, the fields of one neighbour one after the other.
Draft draft_fields(const Links&, const std::vector<Field>&, const Labels&);

// From faces of this rank to those that the same rank receives, where it is its own neighbour.
std::vector<kernels::StridedCopy> own_copies(const Links&, const FacePackets&);
std::vector<kernels::StridedCopy> own_copies(const Links&, const std::vector<Field>&);

}  // namespace ropewalk::halo
