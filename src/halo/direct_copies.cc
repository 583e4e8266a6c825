// This file decides how each buffer is reached: mapped or attached memory is copied by this rank,
// other private memory by the kernel, and what is staged is taken from its sender's arena.
#include "halo/direct_copies.hpp"

#include <bit>
#include <string>

#include "halo/regions.hpp"
#include "halo/staged_faces.hpp"

namespace ropewalk::halo {

namespace {

using channel::Reference;

// This is a buffer of the neighbour, as this rank reaches it.
struct Reached {
  std::byte* data;
  bool by_kernel;  // `data` is an address of the neighbour's process
};

void add(FaceCopies& to, const kernels::StridedCopy& copy, const Reached& there,
         KernelCopy::Way way) {
  if (there.by_kernel) {
    to.by_kernel.emplace_back(copy, way);
  } else {
    to.plain[0].push_back(copy);
  }
}

class LinkWork {
 public:
  LinkWork(const HaloRequest& request, const HaloFacts& facts, const DirectColumns& columns,
           const Link& link, std::byte* scratch)
      : request_(request),
        facts_(facts),
        columns_(columns),
        link_(link),
        scratch_(scratch),
        packets_(request.form != Form::fields),
        face_(packets_ ? face_index(link.offset) : 0),
        bytes_(link_bytes(request, link)),
        staged_in_(staged(link.peer, link.from)),
        staged_out_(staged(request.grid.rank(), link.towards)) {}

  LinkCopies make() {
    LinkCopies out;
    if (bytes_ == 0) return out;
    for (std::size_t odd = 0; odd < 2; ++odd) {
      const std::size_t turn = odd * turn_bytes(bytes_);
      if (staged_in_ != nullptr) out.in.plain[odd] = unpacks(staged_in_ + turn);
      if (staged_out_ != nullptr) out.packs[odd] = packs(staged_out_ + turn);
    }
    out.in.staged = staged_in_ != nullptr;
    packets_ ? add_packets(out) : add_fields(out);
    return out;
  }

 private:
  bool copies_in() const { return staged_in_ == nullptr; }
  bool copies_out() const { return staged_out_ == nullptr && scratch_ == nullptr; }
  std::byte* staged(int rank, int direction) const;
  Reached reached(std::size_t buffer, std::size_t bytes) const;
  std::vector<kernels::StridedCopy> unpacks(const std::byte* from) const;
  std::vector<kernels::StridedCopy> packs(std::byte* to) const;
  void add_packets(LinkCopies&) const;
  void add_fields(LinkCopies&) const;
  Field theirs(std::size_t field) const;

  const HaloRequest& request_;
  const HaloFacts& facts_;
  const DirectColumns& columns_;
  const Link& link_;
  std::byte* scratch_;
  bool packets_;
  std::size_t face_;  // of packets
  std::size_t bytes_;
  std::byte* staged_in_;   // null: what comes in is not staged
  std::byte* staged_out_;  // the same for what goes out
};

// Returns the first place of a face that the rank stages in this direction, as it is mapped here.
std::byte* LinkWork::staged(int rank, int direction) const {
  if (!columns_.staged) return nullptr;
  const std::uint64_t offset =
      facts_.table.at(rank, *columns_.staged + static_cast<std::size_t>(direction));
  return offset == no_memory ? nullptr : facts_.base(rank) + offset;
}

Reached LinkWork::reached(std::size_t buffer, std::size_t bytes) const {
  const std::uint64_t number = facts_.table.at(link_.peer, columns_.buffers + buffer);
  const auto reference = std::bit_cast<Reference>(number);
  std::byte* seen = nullptr;
  if (reference.is_visible()) {
    seen = facts_.memory->resolve(facts_.place(link_.peer), reference, bytes);
  }
  if (seen != nullptr) return {seen, false};
  // What cannot be attached may still be copied.
  if (reference.is_none() || !facts_.team->cma()) {
    throw Error(ErrorCode::system, "halo: memory of rank " + std::to_string(link_.peer) +
                                       " could not be attached, expected fields and faces of that "
                                       "rank's own memory; set ROPEWALK_XPMEM=off");
  }
  return {reinterpret_cast<std::byte*>(reference.place()), true};
}

std::vector<kernels::StridedCopy> LinkWork::unpacks(const std::byte* from) const {
  if (scratch_ != nullptr) return {plain_copy(from, scratch_, bytes_)};
  if (packets_) return {plain_copy(from, request_.faces.receive[face_], bytes_)};
  std::vector<kernels::StridedCopy> out;
  for (const Field& field : request_.fields) {
    if (!takes_part(field, link_.offset)) continue;
    out.push_back(unpack(field, ghosts_towards(field, link_.offset), from));
    from += region_bytes(field, link_.offset);
  }
  return out;
}

std::vector<kernels::StridedCopy> LinkWork::packs(std::byte* to) const {
  if (packets_) return {plain_copy(request_.faces.send[face_], to, bytes_)};
  std::vector<kernels::StridedCopy> out;
  for (const Field& field : request_.fields) {
    if (!takes_part(field, link_.offset)) continue;
    out.push_back(pack(field, sent_towards(field, link_.offset), to));
    to += region_bytes(field, link_.offset);
  }
  return out;
}

// The neighbour's faces for this rank are those of its opposite direction.
void LinkWork::add_packets(LinkCopies& out) const {
  const std::size_t there = face_ ^ 1U;
  const std::size_t directions = 2 * request_.dimensions();
  if (copies_in()) {
    const Reached from = reached(there, bytes_);
    void* to = scratch_ != nullptr ? scratch_ : request_.faces.receive[face_];
    add(out.in, plain_copy(from.data, to, bytes_), from, KernelCopy::Way::read);
  }
  if (copies_out()) {
    const Reached to = reached(directions + there, bytes_);
    add(out.out, plain_copy(request_.faces.send[face_], to.data, bytes_), to,
        KernelCopy::Way::write);
  }
}

// Returns the field of the neighbour, without the place of its data.
Field LinkWork::theirs(std::size_t field) const {
  Field out = request_.fields[field];
  const std::size_t column = HaloFacts::interior_column(field, request_.dimensions());
  for (std::size_t d = 0; d < request_.dimensions(); ++d) {
    out.interior[d] = facts_.table.at(link_.peer, column + d);
  }
  return out;
}

void LinkWork::add_fields(LinkCopies& out) const {
  const std::vector<int> back = opposite(link_.offset);
  std::byte* scratch = scratch_;
  if (!copies_in() && !copies_out()) return;
  for (std::size_t f = 0; f < request_.fields.size(); ++f) {
    const Field& own = request_.fields[f];
    if (!takes_part(own, link_.offset)) continue;
    Field there = theirs(f);
    const Reached data = reached(f, array_bytes(there));
    there.data = data.data;
    if (copies_in()) {
      const Region from = sent_towards(there, back);
      const kernels::StridedCopy in =
          scratch != nullptr ? pack(there, from, scratch)
                             : copy(there, from, own, ghosts_towards(own, link_.offset));
      add(out.in, in, data, KernelCopy::Way::read);
      if (scratch != nullptr) scratch += region_bytes(own, link_.offset);
    }
    if (copies_out()) {
      add(out.out, copy(own, sent_towards(own, link_.offset), there, ghosts_towards(there, back)),
          data, KernelCopy::Way::write);
    }
  }
}

}  // namespace

LinkCopies link_copies(const HaloRequest& request, const HaloFacts& facts,
                       const DirectColumns& columns, const Link& link, std::byte* scratch) {
  return LinkWork(request, facts, columns, link, scratch).make();
}

}  // namespace ropewalk::halo
