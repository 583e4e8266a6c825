// Facts about every rank's memory are gathered once; all addresses are fixed here.
#include "halo/neighbours.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>

#include "halo/joint.hpp"
#include "halo/regions.hpp"
#include "mpi/mpi.hpp"
#include "ropewalk/memory.hpp"
#include "transport/access.hpp"

namespace ropewalk::halo {

namespace {

constexpr std::size_t max_dimensions = CartesianGrid::max_dimensions;

// What neighbours need to know of a rank.
struct FieldFacts {
  std::uint64_t offset;  // in the arena
  std::array<std::uint64_t, max_dimensions> interior;
};
struct FaceFacts {
  std::array<std::uint64_t, 2 * max_dimensions> send;  // offsets in the arena
  std::array<std::uint64_t, 2 * max_dimensions> receive;
};

mpi::Comm comm_of(const CartesianGrid& grid) { return {grid.communicator().handle()}; }

bool crosses(const Link& link) { return link.carrier != Carrier::copy; }

void require_in_arena(const void* data, std::size_t bytes, const std::string& name) {
  if (Arena::process().contains(data, bytes)) return;
  throw Error(ErrorCode::unsupported,
              "strategy: direct, but " + name +
                  " is private memory, expected memory that neighbours can map; allocate it with "
                  "ropewalk::Buffer or rw_alloc, or choose another strategy");
}

// Bytes of the array, ghosts included.
std::size_t array_bytes(const Field& field) {
  return array_strides(field)[0] * (field.interior[0] + 2 * field.ghost[0]);
}

// The team, and this rank's flags, known to all: what every plan begins with.
struct Ground {
  std::shared_ptr<transport::LaneSet> lanes;
  node::Team* team = nullptr;
  FlagBlock flags;
  std::vector<std::uint64_t> blocks;  // [rank]: offset of its flags in its arena

  std::byte* block(int rank) const {
    return team->base(rank) + blocks[static_cast<std::size_t>(rank)];
  }
};

// Flags are followed by `face_bytes` of memory for faces.
Ground ground(const CartesianGrid& grid, const EndpointSet& endpoints, const Links& links,
              Strategy strategy = Strategy::direct, std::size_t face_bytes = 0) {
  const mpi::Comm comm = comm_of(grid);
  Ground out;
  out.lanes = transport::Access::lanes(endpoints);
  if (links.directions == 0) {  // nothing crosses from rank to rank anywhere
    jointly(comm, [&] {
      if (face_bytes > 0) out.flags = FlagBlock(0, face_bytes);
    });
    return out;
  }
  std::string reason;
  out.team = out.lanes->team(reason);
  jointly(comm, [&] {
    if (out.team == nullptr) {
      throw Error(ErrorCode::unsupported,
                  std::string("strategy: ") + name(strategy) + ", but " + reason +
                      ", expected ranks that map each other's memory; choose another strategy");
    }
    out.flags = FlagBlock(links.directions, face_bytes);
    out.blocks.resize(static_cast<std::size_t>(grid.size()));
  });
  const std::uint64_t own = out.flags.offset();
  mpi::all_gather(&own, out.blocks.data(), sizeof own, comm);
  return out;
}

// The field of a neighbour as this rank maps it.
Field seen(const node::Team& team, int peer, const Field& own, const FieldFacts& facts) {
  Field out = own;
  out.data = team.base(peer) + facts.offset;
  for (std::size_t d = 0; d < out.interior.size(); ++d) out.interior[d] = facts.interior[d];
  return out;
}

void require_fields_in_arena(const CartesianGrid& grid, const Links& links,
                             const std::vector<Field>& fields) {
  jointly(comm_of(grid), [&] {
    for (std::size_t f = 0; f < fields.size(); ++f) {
      for (const Link& link : links.present) {
        if (!crosses(link) || !takes_part(fields[f], link.offset)) continue;
        require_in_arena(fields[f].data, array_bytes(fields[f]),
                         "field[" + std::to_string(f) + "].data");
      }
    }
  });
}

void require_faces_in_arena(const CartesianGrid& grid, const Links& links,
                            const FacePackets& faces) {
  jointly(comm_of(grid), [&] {
    for (const Link& link : links.present) {
      const std::size_t i = face_index(link.offset);
      if (!crosses(link) || faces.bytes[i] == 0) continue;
      const std::string index = "[" + std::to_string(i) + "]";
      require_in_arena(faces.send[i], faces.bytes[i], "faces.send" + index);
      require_in_arena(faces.receive[i], faces.bytes[i], "faces.receive" + index);
    }
  });
}

std::uint64_t offset_of(const void* data, std::size_t bytes) {
  return Arena::process().contains(data, bytes) ? Arena::process().offset(data) : 0;
}

// [rank][field]. A field that is not in the arena is none that a neighbour needs: it was checked.
std::vector<FieldFacts> gather_fields(const CartesianGrid& grid, const std::vector<Field>& fields) {
  std::vector<FieldFacts> own(fields.size());
  std::vector<FieldFacts> all;
  jointly(comm_of(grid), [&] {
    all.resize(own.size() * static_cast<std::size_t>(grid.size()));
    for (std::size_t f = 0; f < fields.size(); ++f) {
      own[f].offset = offset_of(fields[f].data, array_bytes(fields[f]));
      for (std::size_t d = 0; d < fields[f].interior.size(); ++d) {
        own[f].interior[d] = fields[f].interior[d];
      }
    }
  });
  mpi::all_gather(own.data(), all.data(), own.size() * sizeof(FieldFacts), comm_of(grid));
  return all;
}

// [rank]. The same for packets.
std::vector<FaceFacts> gather_faces(const CartesianGrid& grid, const FacePackets& faces) {
  FaceFacts own{};
  std::vector<FaceFacts> all;
  jointly(comm_of(grid), [&] {
    all.resize(static_cast<std::size_t>(grid.size()));
    for (std::size_t i = 0; i < faces.bytes.size(); ++i) {
      if (faces.bytes[i] == 0) continue;
      own.send[i] = offset_of(faces.send[i], faces.bytes[i]);
      own.receive[i] = offset_of(faces.receive[i], faces.bytes[i]);
    }
  });
  mpi::all_gather(&own, all.data(), sizeof own, comm_of(grid));
  return all;
}

// Blocks of a rehearsal, one for each face and field that come in.
class Scratch {
 public:
  explicit Scratch(Buffer<std::byte>* buffer) : buffer_(buffer) {}
  bool rehearses() const noexcept { return buffer_ != nullptr; }
  // Collective. `bytes(link)` come in over a link.
  template <class Bytes>
  void allocate(const CartesianGrid& grid, const Links& links, Bytes&& bytes) {
    if (!rehearses()) return;
    jointly(comm_of(grid), [&] {
      std::size_t sum = 0;
      for (const Link& link : links.present) sum += crosses(link) ? bytes(link) : 0;
      if (sum > 0) *buffer_ = Buffer<std::byte>(sum);
    });
  }
  std::byte* take(std::size_t bytes) noexcept {
    used_ += bytes;
    return buffer_->data() + used_ - bytes;
  }

 private:
  Buffer<std::byte>* buffer_;
  std::size_t used_ = 0;
};

std::size_t incoming_bytes(const Link& link, const std::vector<Field>& fields) {
  std::size_t sum = 0;
  for (const Field& field : fields) {
    if (takes_part(field, link.offset)) sum += region_bytes(field, link.offset);
  }
  return sum;
}

// Of one link. What comes in over it is empty exactly where the other rank has nothing to send.
struct Copies {
  std::vector<StridedCopy> in;
  std::vector<StridedCopy> out;  // empty where only the neighbour can make them
};

// `copies(link, team)` gives those of a link; links without any are left out on both sides.
template <class CopiesOf>
Transfers transfers(Ground& ground, const Links& links, CopiesOf&& copies) {
  Transfers out;
  for (const Link& link : links.present) {
    if (!crosses(link)) continue;
    Copies both = copies(link, *ground.team);
    if (both.in.empty()) continue;
    std::byte* block = ground.block(link.peer);
    const FlagLine* started = &FlagBlock::started_of(block);
    // What this rank sends at `offset` the neighbour receives in the opposite direction.
    out.incoming.push_back({link.peer, started, &ground.flags.claim(link.towards),
                            &ground.flags.copied(link.towards), link.towards, std::move(both.in)});
    out.outgoing.push_back({link.peer, started, &FlagBlock::claim_of(block, link.from),
                            &FlagBlock::copied_of(block, link.from), link.from,
                            std::move(both.out)});
    out.left.push_back(&FlagBlock::left_of(block, link.from));
    ground.flags.expect(link.towards);
  }
  // Helps with those first that their receivers take last.
  std::sort(out.outgoing.begin(), out.outgoing.end(),
            [](const Transfer& a, const Transfer& b) { return a.direction > b.direction; });
  return out;
}

template <class CopiesOf>
std::unique_ptr<Direct> make(const CartesianGrid& grid, Ground ground, const Links& links,
                             CopiesOf&& copies) {
  std::unique_ptr<Direct> out;
  jointly(comm_of(grid), [&] {
    Transfers all = transfers(ground, links, copies);
    all.flags = std::move(ground.flags);
    out = std::make_unique<Direct>(ground.lanes, ground.team, std::move(all));
  });
  return out;
}

// How the memory of FaceSizes is divided: all faces once for each turn.
struct FaceRoom {
  static constexpr std::size_t alignment = alignof(FlagLine);
  std::array<std::size_t, 2 * max_dimensions> offset{};
  std::size_t bytes = 0;  // of a turn

  std::byte* place(const FlagBlock& flags, std::size_t turn, std::size_t direction) const {
    return flags.faces() + turn * bytes + offset[direction];
  }
};

FaceRoom face_room(const Links& links, const FaceSizes& sizes) {
  FaceRoom out;
  for (const Link& link : links.present) {
    const std::size_t i = face_index(link.offset);
    out.offset[i] = out.bytes;
    out.bytes +=
        (sizes.bytes[i] + FaceRoom::alignment - 1) / FaceRoom::alignment * FaceRoom::alignment;
  }
  return out;
}

// Offsets in the arena.
struct PlaceFacts {
  std::array<std::array<std::uint64_t, 2 * max_dimensions>, 2> place;
};

// [rank]
std::vector<PlaceFacts> gather_places(const CartesianGrid& grid, const FlagBlock& flags,
                                      const FaceRoom& room) {
  std::vector<PlaceFacts> all;
  jointly(comm_of(grid), [&] { all.resize(static_cast<std::size_t>(grid.size())); });
  if (room.bytes == 0 && grid.size() == 1) return all;
  PlaceFacts own{};
  const std::uint64_t faces = Arena::process().offset(flags.faces());
  for (std::size_t turn = 0; turn < 2; ++turn) {
    for (std::size_t i = 0; i < room.offset.size(); ++i) {
      own.place[turn][i] = faces + turn * room.bytes + room.offset[i];
    }
  }
  mpi::all_gather(&own, all.data(), sizeof own, comm_of(grid));
  return all;
}

}  // namespace

std::unique_ptr<Direct> direct_faces(const CartesianGrid& grid, const EndpointSet& endpoints,
                                     const Links& links, const FacePackets& faces,
                                     Buffer<std::byte>* rehearsal) {
  require_faces_in_arena(grid, links, faces);
  Ground base = ground(grid, endpoints, links);
  const std::vector<FaceFacts> facts = gather_faces(grid, faces);
  Scratch scratch(rehearsal);
  scratch.allocate(grid, links,
                   [&](const Link& link) { return faces.bytes[face_index(link.offset)]; });
  return make(grid, std::move(base), links, [&](const Link& link, const node::Team& team) {
    const std::size_t i = face_index(link.offset);
    const std::size_t bytes = faces.bytes[i];
    std::byte* there = team.base(link.peer);
    const FaceFacts& fact = facts[static_cast<std::size_t>(link.peer)];
    Copies copies;
    if (bytes == 0) return copies;
    const auto plain = [&](const void* from, void* to) {
      return StridedCopy(from, to, {{}, {}, {}, bytes});
    };
    // The neighbour's packets for this rank are those of its opposite direction.
    void* to = scratch.rehearses() ? scratch.take(bytes) : faces.receive[i];
    copies.in.push_back(plain(there + fact.send[i ^ 1U], to));
    if (scratch.rehearses()) return copies;
    copies.out.push_back(plain(faces.send[i], there + fact.receive[i ^ 1U]));
    return copies;
  });
}

std::unique_ptr<Direct> direct_fields(const CartesianGrid& grid, const EndpointSet& endpoints,
                                      const Links& links, const std::vector<Field>& fields,
                                      Buffer<std::byte>* rehearsal) {
  require_fields_in_arena(grid, links, fields);
  Ground base = ground(grid, endpoints, links);
  const std::vector<FieldFacts> facts = gather_fields(grid, fields);
  Scratch scratch(rehearsal);
  scratch.allocate(grid, links, [&](const Link& link) { return incoming_bytes(link, fields); });
  return make(grid, std::move(base), links, [&](const Link& link, const node::Team& team) {
    const std::vector<int> back = opposite(link.offset);
    Copies copies;
    for (std::size_t f = 0; f < fields.size(); ++f) {
      const Field& own = fields[f];
      if (!takes_part(own, link.offset)) continue;
      const Field theirs = seen(team, link.peer, own,
                                facts[static_cast<std::size_t>(link.peer) * fields.size() + f]);
      if (scratch.rehearses()) {
        copies.in.push_back(
            pack(theirs, sent_towards(theirs, back), scratch.take(region_bytes(own, link.offset))));
        continue;
      }
      copies.in.push_back(
          copy(theirs, sent_towards(theirs, back), own, ghosts_towards(own, link.offset)));
      copies.out.push_back(
          copy(own, sent_towards(own, link.offset), theirs, ghosts_towards(theirs, back)));
    }
    return copies;
  });
}

std::unique_ptr<Put> put_faces(const CartesianGrid& grid, const EndpointSet& endpoints,
                               const Links& links, const FaceSizes& sizes) {
  const FaceRoom room = face_room(links, sizes);
  Ground base = ground(grid, endpoints, links, Strategy::put, 2 * room.bytes);
  const std::vector<PlaceFacts> facts = gather_places(grid, base.flags, room);
  std::unique_ptr<Put> out;
  jointly(comm_of(grid), [&] {
    std::vector<Meeting> meetings;
    Places places;
    for (std::vector<void*>& side : places.send) side.resize(sizes.bytes.size());
    for (std::vector<void*>& side : places.receive) side.resize(sizes.bytes.size());
    for (const Link& link : links.present) {
      const std::size_t i = face_index(link.offset);
      if (sizes.bytes[i] == 0) continue;
      for (std::size_t turn = 0; turn < 2; ++turn) {
        places.receive[turn][i] = room.place(base.flags, turn, i);
        // Where the neighbour receives from this rank; this rank itself, for all that is known.
        places.send[turn][i] =
            crosses(link) ? base.team->base(link.peer) +
                                facts[static_cast<std::size_t>(link.peer)].place[turn][i ^ 1U]
                          : room.place(base.flags, turn, i ^ 1U);
      }
      if (!crosses(link)) continue;
      std::byte* block = base.block(link.peer);
      meetings.push_back(
          {link.peer, &FlagBlock::started_of(block), &FlagBlock::left_of(block, link.from)});
      base.flags.expect(link.towards);
    }
    out = std::make_unique<Put>(base.lanes, base.team, std::move(base.flags), std::move(meetings),
                                std::move(places));
  });
  // Only now: where another rank has failed to make its own, its flags are gone.
  out->settle();
  return out;
}

}  // namespace ropewalk::halo
