// The stash holds messages that a probe has taken out of MPI before the program receives them.
//
// A probe must report the size of a message, but MPI sees the 64 bytes of a descriptor. Only the
// bytes themselves tell whether they are one, so that a probe which finds 64 bytes from a rank
// whose descriptors may be under way takes them out. It takes all older messages of that source on
// that communicator along: what lies in the stash is older than whatever MPI has of the same
// source, so that the order of messages stays. Every receive and probe looks into the stash first.
#pragma once

#include <array>
#include <cstddef>
#include <list>
#include <optional>

#include "envelope.hpp"
#include "functions.hpp"
#include "message_mpi.hpp"
#include "message_peers.hpp"
#include "taking.hpp"

namespace ropewalk::preload::messages {

// MessagePattern says which messages a receive or a probe takes.
struct MessagePattern {
  int source;
  int tag;
  Word comm;
};

struct Stashed {
  MessagePattern from{};  // source and tag of the message, and its communicator
  mpi::RawStatus status;  // as the program is to see it
  // MPI has matched a message of any size but that of a descriptor. The program receives it by this
  // handle.
  Word message = 0;
  // A message of 64 bytes was received here: a descriptor where there is a sender, and otherwise
  // the program's own bytes.
  bool opened = false;
  const MessagePeer* sender = nullptr;
  std::array<std::byte, descriptor_bytes> bytes{};
};

class Stash {
 public:
  bool empty() const noexcept { return messages_.empty(); }
  // Returns the oldest message of this pattern, or null.
  Stashed* find(const MessagePattern&) noexcept;
  // Takes that message out.
  std::optional<Stashed> take(const MessagePattern&) noexcept;
  // Says whether what MPI has found with this status may be a descriptor.
  static bool may_be_descriptor(Word comm, const void* status) noexcept;
  // Takes from MPI all messages of this source and communicator, up to the first with this tag, of
  // which MPI has one. Returns a code of MPI's.
  int extract(const MessagePattern&) noexcept;
  // The communicator is about to be freed.
  void forget(Word comm) noexcept;

 private:
  std::list<Stashed> messages_;  // oldest first
};
extern Stash& stash;

// Receives the bytes of a message of 64 bytes that MPI has matched, and says what they are. Returns
// a code of MPI's.
int open(Stashed&) noexcept;
// Copies an opened message to where it is to be received.
Taken deliver(const Stashed&, const Destination&) noexcept;
// Copies what the program is to see of a message to a status, but for the error.
void show(const Stashed&, void* status) noexcept;

// Receives what the stash or a matched probe gave: the program's blocking receive.
int receive_stashed(Stashed&, void* buffer, Count, Word type, void* status) noexcept;
// The same for a nonblocking receive, whose request is complete in MPI.
int start_stashed(Stashed&, void* buffer, Count, Word type, void* request) noexcept;

}  // namespace ropewalk::preload::messages
