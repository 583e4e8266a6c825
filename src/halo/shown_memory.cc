#include "halo/shown_memory.hpp"

#include <algorithm>

#include "channel/own_memory.hpp"
#include "halo/regions.hpp"
#include "ropewalk/memory.hpp"

namespace ropewalk::halo {

namespace {

// Whether a neighbour needs the memory of this face, or field.
bool needed(const Links& links, const FacePackets& faces, std::size_t direction) {
  return faces.bytes[direction] > 0 &&
         std::any_of(links.present.begin(), links.present.end(), [&](const Link& link) {
           return !link.to_itself && face_index(link.offset) == direction;
         });
}
bool needed(const Links& links, const Field& field) {
  return std::any_of(links.present.begin(), links.present.end(), [&](const Link& link) {
    return !link.to_itself && takes_part(field, link.offset);
  });
}

Reach reach_of(const ShownMemory& memory, channel::OwnMemory& own) {
  if (memory.data == nullptr || Arena::process().contains(memory.data, memory.bytes)) {
    return Reach::mapped;
  }
  return own.is_copied_by_kernel(memory.data, memory.bytes) ? Reach::by_kernel : Reach::by_owner;
}

}  // namespace

std::vector<ShownMemory> shown_memory(const HaloRequest& request, const Links& links) {
  const FacePackets& faces = request.faces;
  std::vector<ShownMemory> out;
  const auto add_face = [&](std::size_t direction, const void* data) {
    const bool shows = data != nullptr && needed(links, faces, direction);
    out.push_back(shows ? ShownMemory{data, faces.bytes[direction]} : ShownMemory{});
  };
  for (std::size_t i = 0; i < faces.send.size(); ++i) add_face(i, faces.send[i]);
  for (std::size_t i = 0; i < faces.receive.size(); ++i) add_face(i, faces.receive[i]);
  for (const Field& field : request.fields) {
    const bool shows = needed(links, field);
    out.push_back(shows ? ShownMemory{field.data, array_bytes(field)} : ShownMemory{});
  }
  return out;
}

std::size_t array_bytes(const Field& field) {
  return array_strides(field)[0] * (field.interior[0] + 2 * field.ghost[0]);
}

std::size_t link_bytes(const HaloRequest& request, const Link& link) {
  if (request.form != Form::fields) return request.faces.bytes[face_index(link.offset)];
  std::size_t sum = 0;
  for (const Field& field : request.fields) {
    if (takes_part(field, link.offset)) sum += region_bytes(field, link.offset);
  }
  return sum;
}

Reach reach_of(std::span<const ShownMemory> all) {
  channel::OwnMemory own;
  Reach worst = Reach::mapped;
  for (const ShownMemory& memory : all) worst = std::max(worst, reach_of(memory, own));
  return worst;
}

}  // namespace ropewalk::halo
