#include "collectives/nodes/traffic.hpp"

#include <string>

namespace ropewalk::collectives::nodes {

Header header_of(Kind kind, std::uint64_t count, std::uint32_t form, std::uint32_t root) {
  // As Arrivals::claim packs them.
  return {std::uint64_t{static_cast<std::uint8_t>(kind)} << 56 |
              std::uint64_t{form & 0xffffffU} << 32 | root,
          count};
}

void check_header(const Header& own, const Header& other, int other_rank) {
  if (own.call == other.call && own.count == other.count && own.bytes == other.bytes) return;
  const auto kind = [](const Header& header) {
    return std::string(name(static_cast<Kind>(header.call >> 56)));
  };
  throw Error(ErrorCode::argument,
              "collective: " + kind(own) + " of " + std::to_string(own.count + own.bytes) +
                  " here, but rank " + std::to_string(other_rank) + " on another node calls " +
                  kind(other) + " of " + std::to_string(other.count + other.bytes) +
                  ", or with other arguments; all ranks must make the same call");
}

Traffic::Traffic(Nodes& nodes, const Header& header, std::size_t depth, std::size_t kept)
    : nodes_(nodes), header_(header), own_headers_(depth), headers_(slots(depth, kept)) {
  for (Side* side : {&sends_, &receives_}) {
    side->met.resize(static_cast<std::size_t>(nodes.layout().size()));
    side->requests.resize(depth, mpi::request_null());
    side->slots = side == &sends_ ? depth : slots(depth, kept);
  }
}

// Where the call ends early: nothing may be written into buffers that are about to be freed.
Traffic::~Traffic() {
  for (std::size_t piece = receives_.ended; piece < receives_.begun; ++piece) {
    mpi::withdraw(receives_.request(piece));
  }
}

void Traffic::add(Side& side, int peer, std::size_t bytes) {
  const std::size_t index = side.listed++;
  if (bytes == 0) return;
  const auto place = static_cast<std::size_t>(peer);
  if (!side.met[place]) side.pieces.push_back({peer, sizeof(Header), header_index});
  side.met[place] = true;
  side.pieces.push_back({peer, bytes, index});
}

void Traffic::begin_send(const void* data) {
  const Piece& piece = sends_.pieces[sends_.begun];
  sends_.request(sends_.begun) =
      mpi::isend(data, piece.bytes, piece.peer, nodes_.movement_tag(), nodes_.messages());
  ++sends_.begun;
}

void Traffic::begin_receive(void* data) {
  const Piece& piece = receives_.pieces[receives_.begun];
  receives_.request(receives_.begun) =
      mpi::ireceive(data, piece.bytes, piece.peer, nodes_.movement_tag(), nodes_.messages());
  ++receives_.begun;
}

}  // namespace ropewalk::collectives::nodes
