// These functions take a message that has come: they tell a descriptor from the program's own
// bytes, and copy the data to where it was to be received.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collectives/datatypes.hpp"
#include "envelope.hpp"
#include "functions.hpp"
#include "message_peers.hpp"

namespace ropewalk::preload::messages {

// A Destination says where a receive puts its data.
struct Destination {
  void* buffer = nullptr;
  Count count = 0;
  collectives::Elements elements;
  // The elements lie side by side, so that this process copies them. Any others are copied by MPI.
  bool direct = false;
  Word comm = 0;
};
// Fills in the destination. Returns false where MPI must judge the arguments.
bool describe(void* buffer, Count, Word type, Word comm, Destination&) noexcept;
// Fills in the destination, and returns true where a descriptor may come for this receive. It
// returns false where the receive has no room for a large message, or MPI must judge its arguments.
bool may_be_announced(void* buffer, Count, Word type, Word comm, Destination&) noexcept;

struct Taken {
  int code = 0;  // MPI's code for the receive
  // The number of bytes received; -1 where it was the program's own message, whose status is right.
  std::int64_t bytes = -1;
  // MPI's status is not that of the message, which the next three tell.
  bool tells_status = false;
  int source = 0;
  int tag = 0;
  bool cancelled = false;
};
// Says what a completed receive has brought, and copies the data where that was a descriptor.
Taken take(const Destination&, const void* status) noexcept;
// Copies the data of a descriptor to where it was to be received.
Taken receive(const Destination&, const MessageDescriptor&, const MessagePeer& sender) noexcept;
// Copies the program's own bytes there, which were received elsewhere.
Taken receive_bytes(const Destination&, const std::byte*, std::size_t) noexcept;
// Corrects the status of a receive to what was taken.
void mend(const Taken&, void* status) noexcept;

}  // namespace ropewalk::preload::messages
