#include "collectives/nodes/traffic.hpp"

namespace ropewalk::collectives::nodes {

Traffic::Traffic(Nodes& nodes, const Header& header, std::size_t depth, std::size_t kept)
    : nodes_(nodes), header_(header), own_headers_(depth), headers_(slots(depth, kept)) {
  for (Side* side : {&sends_, &receives_}) {
    side->met.resize(static_cast<std::size_t>(nodes.layout().size()));
    side->requests.resize(depth, mpi::request_null());
    side->slots = side == &sends_ ? depth : slots(depth, kept);
  }
}

// When the call ends early, nothing may be written any more into buffers that are about to be
// freed.
Traffic::~Traffic() {
  for (std::size_t message = receives_.ended; message < receives_.begun; ++message) {
    mpi::withdraw(receives_.request(message));
  }
}

void Traffic::add(Side& side, int peer, std::size_t bytes) {
  const std::size_t index = side.listed++;
  if (bytes == 0) return;
  const auto place = static_cast<std::size_t>(peer);
  if (!side.met[place]) side.messages.push_back({peer, sizeof(Header), header_index});
  side.met[place] = true;
  side.messages.push_back({peer, bytes, index});
}

void Traffic::begin_send(const void* data) {
  const ListedMessage& message = sends_.messages[sends_.begun];
  const Messages& messages = nodes_.messages();
  sends_.request(sends_.begun) =
      mpi::isend(data, message.bytes, message.peer, messages.movement_tag(), messages.comm());
  ++sends_.begun;
}

void Traffic::begin_receive(void* data) {
  const ListedMessage& message = receives_.messages[receives_.begun];
  const Messages& messages = nodes_.messages();
  receives_.request(receives_.begun) =
      mpi::ireceive(data, message.bytes, message.peer, messages.movement_tag(), messages.comm());
  ++receives_.begun;
}

}  // namespace ropewalk::collectives::nodes
