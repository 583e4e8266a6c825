// Drafts of exchanges: every address is fixed here, so that starting one computes nothing.
#include "halo/draft.hpp"

#include <functional>

#include "halo/regions.hpp"

namespace ropewalk::halo {

namespace {

// A message is told apart by the direction in which its receiver sees it, and ordered (`step`) by
// the direction in which its sender sends it: step k is "all towards direction k".
Message outgoing(const Link& link, const void* data, std::size_t bytes, const Labels& labels) {
  return {Message::Kind::send,   const_cast<void*>(data), bytes,       link.peer,
          labels.tag(link.from), labels.lane(link.from),  link.towards};
}

Message incoming(const Link& link, void* data, std::size_t bytes, const Labels& labels) {
  return {Message::Kind::receive,    data,     bytes, link.peer, labels.tag(link.towards),
          labels.lane(link.towards), link.from};
}

std::vector<const Field*> fields_over(const Link& link, const std::vector<Field>& fields) {
  std::vector<const Field*> out;
  for (const Field& field : fields) {
    if (takes_part(field, link.offset)) out.push_back(&field);
  }
  return out;
}

// Blocks of the staging buffer, each on cache lines of its own.
class StagingSpace {
 public:
  std::size_t take(std::size_t bytes) {
    const std::size_t at = size_;
    size_ += (bytes + alignment - 1) / alignment * alignment;
    return at;
  }
  std::size_t size() const noexcept { return size_; }

 private:
  static constexpr std::size_t alignment = 128;  // bytes: two lines, as hardware prefetches pairs
  std::size_t size_ = 0;
};

// One message of a link, in one of its two ways.
struct Parcel {
  const Link* link;
  bool sends;
  std::vector<const Field*> fields;
  std::size_t bytes;
  bool in_place;
  std::size_t offset;  // in the staging buffer, unless in place

  Region region(const Field& field) const {
    return sends ? sent_towards(field, link->offset) : ghosts_towards(field, link->offset);
  }
};

Parcel parcel(const Link& link, bool sends, const std::vector<Field>& fields,
              StagingSpace& staging) {
  Parcel out{&link, sends, fields_over(link, fields), 0, false, 0};
  for (const Field* field : out.fields) out.bytes += region_bytes(*field, link.offset);
  out.in_place = out.fields.size() == 1 && contiguous(*out.fields[0], out.region(*out.fields[0]));
  if (!out.in_place) out.offset = staging.take(out.bytes);
  return out;
}

void add_packing(Draft& draft, const Parcel& parcel, std::byte* at) {
  for (const Field* field : parcel.fields) {
    if (parcel.sends) {
      draft.packs.push_back(pack(*field, parcel.region(*field), at));
    } else {
      draft.unpacks.push_back(unpack(*field, parcel.region(*field), at));
    }
    at += region_bytes(*field, parcel.link->offset);
  }
}

void add_message(Draft& draft, const Parcel& parcel, const Labels& labels) {
  std::byte* data = nullptr;
  if (parcel.in_place) {
    data = parcel.region(*parcel.fields[0]).first;
  } else {
    data = draft.staging.data() + parcel.offset;
    add_packing(draft, parcel, data);
  }
  draft.messages.push_back(parcel.sends ? outgoing(*parcel.link, data, parcel.bytes, labels)
                                        : incoming(*parcel.link, data, parcel.bytes, labels));
}

}  // namespace

bool Draft::staged(const Message& message) const noexcept {
  const auto* data = static_cast<const std::byte*>(message.data);
  const std::less<const std::byte*> before;
  return staging.size() > 0 && !before(data, staging.begin()) && before(data, staging.end());
}

Draft draft_faces(const Links& links, const FacePackets& faces, const Labels& labels) {
  Draft draft;
  for (const Link& link : links.present) {
    const std::size_t i = face_index(link.offset);
    const std::size_t bytes = faces.bytes[i];
    if (bytes == 0 || link.to_itself) continue;
    draft.messages.push_back(incoming(link, faces.receive[i], bytes, labels));
    draft.messages.push_back(outgoing(link, faces.send[i], bytes, labels));
  }
  return draft;
}

Draft draft_fields(const Links& links, const std::vector<Field>& fields, const Labels& labels) {
  Draft draft;
  StagingSpace staging;
  std::vector<Parcel> parcels;
  for (const Link& link : links.present) {
    if (link.to_itself || fields_over(link, fields).empty()) continue;
    parcels.push_back(parcel(link, false, fields, staging));
    parcels.push_back(parcel(link, true, fields, staging));
  }
  if (staging.size() > 0) draft.staging = Buffer<std::byte>(staging.size());
  for (const Parcel& each : parcels) add_message(draft, each, labels);
  return draft;
}

std::vector<kernels::StridedCopy> own_copies(const Links& links, const FacePackets& faces) {
  std::vector<kernels::StridedCopy> out;
  for (const Link& link : links.present) {
    const std::size_t i = face_index(link.offset);
    if (!link.to_itself || faces.bytes[i] == 0) continue;
    out.push_back(plain_copy(faces.send[i ^ 1U], faces.receive[i], faces.bytes[i]));
  }
  return out;
}

// Ghosts at an offset hold what the neighbour there sends the opposite way.
std::vector<kernels::StridedCopy> own_copies(const Links& links, const std::vector<Field>& fields) {
  std::vector<kernels::StridedCopy> out;
  for (const Link& link : links.present) {
    if (!link.to_itself) continue;
    for (const Field* field : fields_over(link, fields)) {
      out.push_back(copy(*field, sent_towards(*field, opposite(link.offset)), *field,
                         ghosts_towards(*field, link.offset)));
    }
  }
  return out;
}

}  // namespace ropewalk::halo
