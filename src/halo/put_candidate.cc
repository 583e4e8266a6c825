// How a PutCarrier is made: every rank has places for what it receives, and tells its neighbours
// where they are.
#include <array>
#include <new>
#include <string>
#include <utility>

#include "halo/candidate.hpp"
#include "halo/put.hpp"
#include "ropewalk/memory.hpp"

namespace ropewalk::halo {

namespace {

// How the memory for faces is divided: all faces one after the other, once for each turn.
struct FaceRoom {
  static constexpr std::size_t alignment = alignof(FlagLine);
  std::vector<std::size_t> offset;
  std::size_t bytes = 0;  // of a turn

  std::byte* place(const FlagBlock& flags, std::size_t turn, std::size_t direction) const {
    return flags.faces() + turn * bytes + offset[direction];
  }
};

FaceRoom face_room(const Links& links, const std::vector<std::size_t>& bytes) {
  FaceRoom out;
  out.offset.resize(bytes.size());
  for (const Link& link : links.present) {
    const std::size_t i = face_index(link.offset);
    out.offset[i] = out.bytes;
    out.bytes += (bytes[i] + FaceRoom::alignment - 1) / FaceRoom::alignment * FaceRoom::alignment;
  }
  return out;
}

std::size_t bytes_to_others(const Links& links, const std::vector<std::size_t>& bytes) {
  std::size_t sum = 0;
  for (const Link& link : links.present) {
    if (!link.to_itself) sum += bytes[face_index(link.offset)];
  }
  return sum;
}

class PutCandidate final : public Candidate {
 public:
  OwnFaces own_faces() const noexcept override { return OwnFaces::none; }
  void show(const HaloRequest& request, HaloFacts& facts) override;
  std::optional<Error> refusal(const HaloRequest&, const HaloFacts& facts) const override;
  // It has only memory of its own, so there is nothing to rehearse.
  std::unique_ptr<Carrier> rehearsal(const HaloRequest&, const HaloFacts&) override {
    return nullptr;
  }
  std::unique_ptr<Carrier> make(const HaloRequest& request, const HaloFacts& facts,
                                Places& places) override;

 private:
  void* send_place(const HaloFacts&, const Link&, std::size_t turn, std::size_t direction) const;
  std::size_t line_bytes(const HaloRequest&) const;
  void make_lines(const HaloRequest&) const;
  FlagLine* lines_of(std::byte* first, const HaloRequest&, std::size_t direction) const;
  const FlagLine* arriving(const HaloRequest&, const HaloFacts&, const Link&) const;
  std::byte* own_lines() const { return flags_.faces() + 2 * room_.bytes; }

  FaceRoom room_;
  FlagBlock flags_;
  std::size_t column_ = 0;        // flags, then places: of each turn, of each direction
  std::size_t lines_column_ = 0;  // of parts; they lie behind the places
};

void PutCandidate::show(const HaloRequest& request, HaloFacts& facts) {
  const int directions = facts.links.directions;
  if (directions > 0 && facts.team == nullptr) return;
  room_ = face_room(facts.near, request.faces.bytes);
  const bool taken = take_memory(request, [&] {
    if (directions == 0 && room_.bytes == 0) return;
    flags_ = FlagBlock(directions, 2 * room_.bytes + line_bytes(request));
    make_lines(request);
  });
  const bool empty = directions == 0 && room_.bytes == 0;
  column_ = facts.table.append(!taken ? no_memory : empty ? 0 : flags_.offset());
  for (std::size_t turn = 0; turn < 2; ++turn) {
    for (std::size_t i = 0; i < room_.offset.size(); ++i) {
      facts.table.append(!taken || empty ? 0
                                         : Arena::process().offset(room_.place(flags_, turn, i)));
    }
  }
  lines_column_ = facts.table.append(!taken || empty ? 0 : Arena::process().offset(own_lines()));
}

std::size_t PutCandidate::line_bytes(const HaloRequest& request) const {
  return room_.offset.size() * static_cast<std::size_t>(request.options.parts) * sizeof(FlagLine);
}

void PutCandidate::make_lines(const HaloRequest& request) const {
  const std::size_t count = line_bytes(request) / sizeof(FlagLine);
  for (std::size_t i = 0; i < count; ++i) new (own_lines() + i * sizeof(FlagLine)) FlagLine;
}

// Returns those of a face, of the rank whose first line is there.
FlagLine* PutCandidate::lines_of(std::byte* first, const HaloRequest& request,
                                 std::size_t direction) const {
  const auto parts = static_cast<std::size_t>(request.options.parts);
  return parts == 0 ? nullptr : reinterpret_cast<FlagLine*>(first) + direction * parts;
}

// What comes in over the link, its sender sends in the opposite direction.
const FlagLine* PutCandidate::arriving(const HaloRequest& request, const HaloFacts& facts,
                                       const Link& link) const {
  std::byte* first = link.to_itself
                         ? own_lines()
                         : facts.base(link.peer) + facts.table.at(link.peer, lines_column_);
  return lines_of(first, request, face_index(link.offset) ^ 1U);
}

std::optional<Error> PutCandidate::refusal(const HaloRequest&, const HaloFacts& facts) const {
  if (std::optional<Error> refused = refuse_without_team(facts, Strategy::put)) return refused;
  const int rank = facts.table.find(column_, no_memory);
  if (rank < 0) return {};
  return Error(ErrorCode::memory, "faces.bytes: rank " + std::to_string(rank) +
                                      " has no room in its arena for twice its faces; send less "
                                      "at a time, or raise ROPEWALK_ARENA_BYTES");
}

// Returns where the neighbour receives from this rank. The neighbour may be this rank itself.
void* PutCandidate::send_place(const HaloFacts& facts, const Link& link, std::size_t turn,
                               std::size_t direction) const {
  const std::size_t there = direction ^ 1U;
  if (link.to_itself) return room_.place(flags_, turn, there);
  const std::size_t column = column_ + 1 + turn * room_.offset.size() + there;
  return facts.base(link.peer) + facts.table.at(link.peer, column);
}

std::unique_ptr<Carrier> PutCandidate::make(const HaloRequest& request, const HaloFacts& facts,
                                            Places& places) {
  const std::vector<std::size_t>& bytes = request.faces.bytes;
  std::vector<Meeting> meetings;
  PartLines lines{request.options.parts, std::vector<PartLines::Face>(bytes.size())};
  for (std::vector<void*>& side : places.send) side.assign(bytes.size(), nullptr);
  for (std::vector<void*>& side : places.receive) side.assign(bytes.size(), nullptr);
  for (const Link& link : facts.near.present) {
    const std::size_t i = face_index(link.offset);
    if (bytes[i] == 0) continue;
    for (std::size_t turn = 0; turn < 2; ++turn) {
      places.receive[turn][i] = room_.place(flags_, turn, i);
      places.send[turn][i] = send_place(facts, link, turn, i);
    }
    const FlagLine* coming = arriving(request, facts, link);
    lines.faces[i] = {lines_of(own_lines(), request, i), coming};
    if (link.to_itself) continue;
    std::byte* block = facts.base(link.peer) + facts.table.at(link.peer, column_);
    meetings.push_back(
        {link.peer, &FlagBlock::started_of(block), &FlagBlock::left_of(block, link.from), coming});
    flags_.expect(link.towards);
  }
  return std::make_unique<PutCarrier>(facts.lane_set, facts.team, std::move(flags_),
                                      std::move(meetings), std::move(lines),
                                      bytes_to_others(facts.near, bytes));
}

}  // namespace

void add_put(const HaloRequest&, const HaloFacts& facts, Candidates& candidates) {
  add_for_node(facts, std::make_unique<PutCandidate>(), candidates);
}

}  // namespace ropewalk::halo
