// What one exchange consists of, before it becomes a plan: messages, and the copies around them.
#pragma once

#include <vector>

#include "halo/links.hpp"
#include "halo/strided_copy.hpp"
#include "ropewalk/halo.hpp"
#include "ropewalk/memory.hpp"

namespace ropewalk::halo {

// How the messages of this halo are told from those of others, and dealt to lanes.
struct Labels {
  int first_tag = 0;   // tag of direction 0; tags go round at tag_count
  int lanes = 1;       // of the endpoints
  int directions = 0;  // numbers of `Links` in use

  static constexpr int tag_count = 32767 / 8 + 1;  // Message::tag is 0 to 32767/8

  int tag(int direction) const noexcept { return (first_tag + direction) % tag_count; }
  // One lane a direction. Where lanes are left over, large messages are split over all of them.
  int lane(int direction) const noexcept { return lanes > directions ? -1 : direction % lanes; }
};

struct Draft {
  Buffer<std::byte> staging;         // packed messages, on the pages of the process arena
  std::vector<StridedCopy> packs;    // field to staging, before the messages start
  std::vector<StridedCopy> copies;   // own cells to own ghosts, while messages are under way
  std::vector<StridedCopy> unpacks;  // staging to field, after the messages arrived
  std::vector<Message> messages;

  bool staged(const Message&) const noexcept;  // in `staging`, not in the caller's memory
};

Draft draft_faces(const Links&, const FacePackets&, const Labels&);

// Messages of one field whose region is one run of bytes are sent and received in place; all
// others are packed, the fields of one neighbour one after the other.
Draft draft_fields(const Links&, const std::vector<Field>&, const Labels&);

}  // namespace ropewalk::halo
