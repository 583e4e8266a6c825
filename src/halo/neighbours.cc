// Facts about every rank's memory are gathered once; all addresses are fixed here.
#include "halo/neighbours.hpp"

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
  std::array<std::uint64_t, 2 * max_dimensions> offset;  // of send[], in the arena
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

Ground ground(const CartesianGrid& grid, const EndpointSet& endpoints, const Links& links) {
  const mpi::Comm comm = comm_of(grid);
  Ground out;
  out.lanes = transport::Access::lanes(endpoints);
  if (links.directions == 0) return out;  // nothing crosses from rank to rank anywhere
  std::string reason;
  out.team = out.lanes->team(reason);
  jointly(comm, [&] {
    if (out.team == nullptr) {
      throw Error(ErrorCode::unsupported,
                  "strategy: direct, but " + reason +
                      ", expected ranks that map each other's memory; choose another strategy");
    }
    out.flags = FlagBlock(links.directions);
    out.blocks.resize(static_cast<std::size_t>(grid.size()));
  });
  const std::uint64_t own = out.flags.offset();
  mpi::all_gather(&own, out.blocks.data(), sizeof own, comm);
  return out;
}

Incoming incoming(const Ground& ground, const Link& link) {
  std::byte* block = ground.block(link.peer);
  // What this rank finds at `offset` the neighbour sends in the opposite direction.
  return {link.peer, &FlagBlock::ready_of(block), &FlagBlock::done_of(block, link.from), {}, 0};
}

// The field of a neighbour as this rank maps it.
Field seen(const node::Team& team, int peer, const Field& own, const FieldFacts& facts) {
  Field out = own;
  out.data = team.base(peer) + facts.offset;
  for (std::size_t d = 0; d < out.interior.size(); ++d) out.interior[d] = facts.interior[d];
  return out;
}

std::vector<FieldFacts> gather_fields(const CartesianGrid& grid, const Links& links,
                                      const std::vector<Field>& fields) {
  const mpi::Comm comm = comm_of(grid);
  std::vector<FieldFacts> own(fields.size());
  std::vector<FieldFacts> all;
  jointly(comm, [&] {
    all.resize(own.size() * static_cast<std::size_t>(grid.size()));
    for (std::size_t f = 0; f < fields.size(); ++f) {
      for (std::size_t d = 0; d < fields[f].interior.size(); ++d) {
        own[f].interior[d] = fields[f].interior[d];
      }
      for (const Link& link : links.present) {
        if (!crosses(link) || !takes_part(fields[f], link.offset)) continue;
        require_in_arena(fields[f].data, array_bytes(fields[f]),
                         "field[" + std::to_string(f) + "].data");
        own[f].offset = Arena::process().offset(fields[f].data);
      }
    }
  });
  mpi::all_gather(own.data(), all.data(), own.size() * sizeof(FieldFacts), comm);
  return all;
}

std::vector<FaceFacts> gather_faces(const CartesianGrid& grid, const Links& links,
                                    const FacePackets& faces) {
  const mpi::Comm comm = comm_of(grid);
  FaceFacts own{};
  std::vector<FaceFacts> all;
  jointly(comm, [&] {
    all.resize(static_cast<std::size_t>(grid.size()));
    for (const Link& link : links.present) {
      const std::size_t i = face_index(link.offset);
      if (!crosses(link) || faces.bytes[i] == 0) continue;
      require_in_arena(faces.send[i], faces.bytes[i], "faces.send[" + std::to_string(i) + "]");
      own.offset[i] = Arena::process().offset(faces.send[i]);
    }
  });
  mpi::all_gather(&own, all.data(), sizeof own, comm);
  return all;
}

// `copies(link)` gives what comes in over a link; links without any are left out on both sides.
template <class Copies>
std::unique_ptr<Direct> make(const CartesianGrid& grid, Ground ground, const Links& links,
                             Copies&& copies) {
  std::unique_ptr<Direct> out;
  jointly(comm_of(grid), [&] {
    std::vector<Incoming> in;
    std::vector<int> outgoing;
    for (const Link& link : links.present) {
      if (!crosses(link)) continue;
      Incoming next = incoming(ground, link);
      next.copies = copies(link, *ground.team);
      if (next.copies.empty()) continue;
      in.push_back(std::move(next));
      outgoing.push_back(link.towards);
    }
    out = std::make_unique<Direct>(ground.lanes, ground.team, std::move(ground.flags),
                                   std::move(in), std::move(outgoing));
  });
  return out;
}

}  // namespace

std::unique_ptr<Direct> direct_faces(const CartesianGrid& grid, const EndpointSet& endpoints,
                                     const Links& links, const FacePackets& faces) {
  const std::vector<FaceFacts> facts = gather_faces(grid, links, faces);
  return make(grid, ground(grid, endpoints, links), links, [&](const Link& link, node::Team& team) {
    std::vector<StridedCopy> out;
    const std::size_t i = face_index(link.offset);
    if (faces.bytes[i] == 0) return out;
    const std::byte* from =
        team.base(link.peer) + facts[static_cast<std::size_t>(link.peer)].offset[i ^ 1U];
    out.push_back(StridedCopy(from, faces.receive[i], {{}, {}, {}, faces.bytes[i]}));
    return out;
  });
}

std::unique_ptr<Direct> direct_fields(const CartesianGrid& grid, const EndpointSet& endpoints,
                                      const Links& links, const std::vector<Field>& fields) {
  const std::vector<FieldFacts> facts = gather_fields(grid, links, fields);
  return make(grid, ground(grid, endpoints, links), links, [&](const Link& link, node::Team& team) {
    std::vector<StridedCopy> out;
    for (std::size_t f = 0; f < fields.size(); ++f) {
      if (!takes_part(fields[f], link.offset)) continue;
      const Field theirs = seen(team, link.peer, fields[f],
                                facts[static_cast<std::size_t>(link.peer) * fields.size() + f]);
      out.push_back(copy(theirs, sent_towards(theirs, opposite(link.offset)), fields[f],
                         ghosts_towards(fields[f], link.offset)));
    }
    return out;
  });
}

}  // namespace ropewalk::halo
