// The outbox holds the messages on their way out: those of the program whose data a receiver is to
// copy.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "envelope.hpp"
#include "functions.hpp"
#include "message_peers.hpp"

namespace ropewalk::preload::messages {

struct Outgoing {
  bool used = false;         // the slot is this message's
  bool ended = false;        // the program's send is complete
  bool synchronous = false;  // complete no earlier than its receive has begun
  // MPI needs the descriptor no longer. Where the send is synchronous, its receive has begun.
  bool matched = false;
  EnvelopeSlot* slot = nullptr;
  const MessagePeer* peer = nullptr;
  const std::byte* data = nullptr;
  std::size_t bytes = 0;
  std::int64_t since_ns = 0;
  unsigned looks = 0;    // of is_found_dead()
  bool told = false;     // that nobody has taken it for long
  bool helped = false;   // this rank has begun all pieces that were left
  Word posted = 0;       // MPI's request for the descriptor
  void* copy = nullptr;  // the copy of the data, once it is kept
  MessageDescriptor descriptor{};
};

struct SendArguments {
  const void* data;
  int count;
  Word type;
  int destination;
  int tag;
  Word comm;
  bool synchronous = false;
};

// Returns the bytes of a message whose size and type allow it to be announced, and 0 for any other.
std::size_t large_bytes(const SendArguments&) noexcept;
// The same of a message that is sent later, when there may be ranks to announce it to.
std::size_t later_bytes(const SendArguments&) noexcept;
// Arms a slot for this message, and returns null where the message is to be MPI's own. Where it is
// `acknowledged`, the receiver is to send a message of no bytes on ranks.comm, whose tag is the
// number of the slot.
Outgoing* begin(const SendArguments&, std::size_t bytes, bool acknowledged) noexcept;
// Sends the descriptor. Where it returns an error code of MPI's, the message is withdrawn.
int post(Outgoing&, const SendArguments&) noexcept;
// Returns true where the receiver has all data, or a copy of it is kept, so that the program may
// use its buffer. The call helps to copy where the receiver wants that, and keeps a copy once the
// message has waited for longer than the patience.
bool is_over(Outgoing&) noexcept;
// Returns true where the receiver has all data. Unlike is_over(), it copies nothing, which may take
// long.
bool is_copied(const Outgoing&) noexcept;
// Returns true where a copy of the data is kept.
bool is_kept(const Outgoing&) noexcept;
// Copies the data away, so that the program's send is complete. Returns false where that cannot be
// done now.
bool keep(Outgoing&) noexcept;
// Gives up a message whose descriptor has not been sent, and frees its slot.
void withdraw(Outgoing&) noexcept;
// Returns true where the receiver has died without receiving the message, so that nobody will.
bool is_lost(const Outgoing&) noexcept;
// Says whether the receiver is seen to be dead. Only every so many calls look, since a look is a
// system call; a loop that waits calls this.
bool is_found_dead(Outgoing&) noexcept;
// Returns MPI's code of an error that names the receiver of a message that is lost.
int code_of_loss(const Outgoing&) noexcept;
// Notes that the program's send is complete. The slot becomes free once the receiver has the data.
void leave(Outgoing&) noexcept;
// Returns the number of the message's slot.
int number(const Outgoing&) noexcept;

// Frees the slots of ended messages that have been received since.
void sweep() noexcept;
// Empties the outbox when MPI is about to end: it waits for MPI's own requests, and keeps a copy of
// what nobody has taken.
void end_outbox() noexcept;

}  // namespace ropewalk::preload::messages
