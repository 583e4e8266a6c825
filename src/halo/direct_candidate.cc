// How a DirectCarrier is made: what ranks tell each other about their memory, and the copies that
// follow from it. All addresses are fixed here.
#include <algorithm>
#include <string>
#include <utility>

#include "halo/candidate.hpp"
#include "halo/direct.hpp"
#include "halo/regions.hpp"
#include "ropewalk/memory.hpp"

namespace ropewalk::halo {

namespace {

// The copies of one link. What comes in over it is empty exactly where the other rank has nothing
// to send.
struct LinkCopies {
  std::vector<StridedCopy> in;
  std::vector<StridedCopy> out;  // empty where only the neighbour can make them
};

// Bytes of the array, ghosts included.
std::size_t array_bytes(const Field& field) {
  return array_strides(field)[0] * (field.interior[0] + 2 * field.ghost[0]);
}

std::size_t incoming_bytes(const HaloRequest& request, const Link& link) {
  if (request.form != Form::fields) return request.faces.bytes[face_index(link.offset)];
  std::size_t sum = 0;
  for (const Field& field : request.fields) {
    if (takes_part(field, link.offset)) sum += region_bytes(field, link.offset);
  }
  return sum;
}

// Offset in the arena.
std::uint64_t shown(const void* data, std::size_t bytes) {
  Arena::process().note_communicated(data, bytes);
  return Arena::process().contains(data, bytes) ? Arena::process().offset(data) : private_memory;
}

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

class DirectCandidate final : public Candidate {
 public:
  void show(const HaloRequest& request, HaloFacts& facts) override;
  std::optional<Error> refusal(const HaloRequest& request, const HaloFacts& facts) const override;
  std::unique_ptr<Carrier> rehearsal(const HaloRequest& request, const HaloFacts& facts) override {
    return carrier(request, facts, rehearsed_, &scratch_);
  }
  std::unique_ptr<Carrier> make(const HaloRequest& request, const HaloFacts& facts,
                                Places&) override {
    scratch_ = {};
    return carrier(request, facts, real_, nullptr);
  }

 private:
  // The flags of one carrier, and the column of the table that says where they lie.
  struct ShownFlags {
    FlagBlock block;
    std::size_t column = 0;
  };

  void show_flags(const HaloRequest&, HaloFacts&, ShownFlags&, std::size_t scratch_bytes);
  void show_buffers(const HaloRequest&, HaloFacts&);
  std::string name_of_buffer(const HaloRequest&, std::size_t index) const;
  std::unique_ptr<Carrier> carrier(const HaloRequest&, const HaloFacts&, ShownFlags&,
                                   Buffer<std::byte>* scratch) const;
  LinkCopies copies(const HaloRequest&, const HaloFacts&, const Link&, std::byte* scratch) const;
  LinkCopies face_copies(const HaloRequest&, const HaloFacts&, const Link&,
                         std::byte* scratch) const;
  LinkCopies field_copies(const HaloRequest&, const HaloFacts&, const Link&,
                          std::byte* scratch) const;

  ShownFlags real_;
  ShownFlags rehearsed_;
  Buffer<std::byte> scratch_;  // what a rehearsal receives
  // The first column of memory that neighbours map. Of faces: where they are sent from, then where
  // they are received, a column for each direction. Of fields: a column for each.
  std::size_t buffers_ = 0;
  std::size_t buffer_count_ = 0;
};

void DirectCandidate::show(const HaloRequest& request, HaloFacts& facts) {
  if (facts.team == nullptr) return;
  show_flags(request, facts, real_, 0);
  if (request.rehearses()) {
    std::size_t bytes = 0;
    for (const Link& link : facts.links.present) {
      if (!link.to_itself) bytes += incoming_bytes(request, link);
    }
    show_flags(request, facts, rehearsed_, bytes);
  }
  show_buffers(request, facts);
}

void DirectCandidate::show_flags(const HaloRequest& request, HaloFacts& facts, ShownFlags& flags,
                                 std::size_t scratch_bytes) {
  const bool taken = take_memory(request, [&] {
    flags.block = FlagBlock(facts.links.directions);
    if (scratch_bytes > 0) scratch_ = Buffer<std::byte>(scratch_bytes);
  });
  flags.column = facts.table.append(taken ? flags.block.offset() : no_memory);
}

void DirectCandidate::show_buffers(const HaloRequest& request, HaloFacts& facts) {
  const FacePackets& faces = request.faces;
  std::vector<std::uint64_t> offsets;
  const auto add_face = [&](std::size_t direction, const void* data) {
    const bool shows = data != nullptr && needed(facts.links, faces, direction);
    offsets.push_back(shows ? shown(data, faces.bytes[direction]) : 0);
  };
  for (std::size_t i = 0; i < faces.send.size(); ++i) add_face(i, faces.send[i]);
  for (std::size_t i = 0; i < faces.receive.size(); ++i) add_face(i, faces.receive[i]);
  for (const Field& field : request.fields) {
    const bool shows = needed(facts.links, field);
    offsets.push_back(shows ? shown(field.data, array_bytes(field)) : 0);
  }
  buffer_count_ = offsets.size();
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    const std::size_t column = facts.table.append(offsets[i]);
    if (i == 0) buffers_ = column;
  }
}

std::string DirectCandidate::name_of_buffer(const HaloRequest& request, std::size_t index) const {
  if (request.form == Form::fields) return "field[" + std::to_string(index) + "].data";
  const std::size_t directions = 2 * request.dimensions();
  return (index < directions ? "faces.send[" : "faces.receive[") +
         std::to_string(index % directions) + "]";
}

std::optional<Error> DirectCandidate::refusal(const HaloRequest& request,
                                              const HaloFacts& facts) const {
  if (facts.links.directions == 0) return {};
  if (facts.team == nullptr) return refuse_without_team(facts, Strategy::direct);
  for (std::size_t i = 0; i < buffer_count_; ++i) {
    const int rank = facts.table.find(buffers_ + i, private_memory);
    if (rank < 0) continue;
    return Error(ErrorCode::unsupported,
                 "strategy: direct, but " + name_of_buffer(request, i) + " of rank " +
                     std::to_string(rank) +
                     " is private memory, expected memory that neighbours can map; allocate it "
                     "with ropewalk::Buffer or rw_alloc, or choose another strategy");
  }
  for (const ShownFlags* flags : {&real_, &rehearsed_}) {
    if (flags == &rehearsed_ && !request.rehearses()) continue;
    if (const int rank = facts.table.find(flags->column, no_memory); rank >= 0) {
      return Error(ErrorCode::memory, "strategy: direct, but the arena of rank " +
                                          std::to_string(rank) +
                                          " is full, expected room for its flags; free memory "
                                          "there, or choose another strategy");
    }
  }
  return {};
}

std::unique_ptr<Carrier> DirectCandidate::carrier(const HaloRequest& request,
                                                  const HaloFacts& facts, ShownFlags& flags,
                                                  Buffer<std::byte>* scratch) const {
  Transfers all;
  std::byte* next = scratch == nullptr ? nullptr : scratch->data();
  for (const Link& link : facts.links.present) {
    if (link.to_itself) continue;
    LinkCopies both = copies(request, facts, link, next);
    if (both.in.empty()) continue;
    if (next != nullptr) next += incoming_bytes(request, link);
    std::byte* block = facts.team->base(link.peer) + facts.table.at(link.peer, flags.column);
    const FlagLine* started = &FlagBlock::started_of(block);
    // What this rank sends at `offset` the neighbour receives in the opposite direction.
    all.incoming.push_back({link.peer, started, &flags.block.claim(link.towards),
                            &flags.block.copied(link.towards), link.towards, std::move(both.in)});
    all.outgoing.push_back({link.peer, started, &FlagBlock::claim_of(block, link.from),
                            &FlagBlock::copied_of(block, link.from), link.from,
                            std::move(both.out)});
    all.left.push_back(&FlagBlock::left_of(block, link.from));
    flags.block.expect(link.towards);
  }
  // A rank helps with those first that their receivers take last.
  std::sort(all.outgoing.begin(), all.outgoing.end(),
            [](const Transfer& a, const Transfer& b) { return a.direction > b.direction; });
  all.flags = std::move(flags.block);
  return std::make_unique<DirectCarrier>(facts.lane_set, facts.team, std::move(all));
}

LinkCopies DirectCandidate::copies(const HaloRequest& request, const HaloFacts& facts,
                                   const Link& link, std::byte* scratch) const {
  return request.form == Form::fields ? field_copies(request, facts, link, scratch)
                                      : face_copies(request, facts, link, scratch);
}

LinkCopies DirectCandidate::face_copies(const HaloRequest& request, const HaloFacts& facts,
                                        const Link& link, std::byte* scratch) const {
  const std::size_t i = face_index(link.offset);
  const std::size_t directions = 2 * request.dimensions();
  const std::size_t bytes = request.faces.bytes[i];
  LinkCopies out;
  if (bytes == 0) return out;
  const auto there = [&](std::size_t column) {
    return facts.team->base(link.peer) + facts.table.at(link.peer, buffers_ + column);
  };
  const auto plain = [&](const void* from, void* to) {
    return StridedCopy(from, to, {{}, {}, {}, bytes});
  };
  // The neighbour's faces for this rank are those of its opposite direction.
  out.in.push_back(plain(there(i ^ 1U), scratch != nullptr ? scratch : request.faces.receive[i]));
  if (scratch == nullptr) {
    out.out.push_back(plain(request.faces.send[i], there(directions + (i ^ 1U))));
  }
  return out;
}

LinkCopies DirectCandidate::field_copies(const HaloRequest& request, const HaloFacts& facts,
                                         const Link& link, std::byte* scratch) const {
  const std::vector<int> back = opposite(link.offset);
  LinkCopies out;
  for (std::size_t f = 0; f < request.fields.size(); ++f) {
    const Field& own = request.fields[f];
    if (!takes_part(own, link.offset)) continue;
    // The field of the neighbour as this rank maps it.
    Field theirs = own;
    theirs.data = facts.team->base(link.peer) + facts.table.at(link.peer, buffers_ + f);
    const std::size_t column = HaloFacts::interior_column(f, request.dimensions());
    for (std::size_t d = 0; d < request.dimensions(); ++d) {
      theirs.interior[d] = facts.table.at(link.peer, column + d);
    }
    if (scratch != nullptr) {
      out.in.push_back(pack(theirs, sent_towards(theirs, back), scratch));
      scratch += region_bytes(own, link.offset);
      continue;
    }
    out.in.push_back(
        copy(theirs, sent_towards(theirs, back), own, ghosts_towards(own, link.offset)));
    out.out.push_back(
        copy(own, sent_towards(own, link.offset), theirs, ghosts_towards(theirs, back)));
  }
  return out;
}

}  // namespace

void add_direct(const HaloRequest&, const HaloFacts&, Candidates& candidates) {
  candidates.push_back(std::make_unique<DirectCandidate>());
}

}  // namespace ropewalk::halo
