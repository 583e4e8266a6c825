// Messages on their way out: those of the program whose data a receiver is to copy.
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
  bool matched = false;  // MPI has the descriptor off our hands; of a synchronous send: received
  EnvelopeSlot* slot = nullptr;
  const MessagePeer* peer = nullptr;
  const std::byte* data = nullptr;
  std::size_t bytes = 0;
  std::int64_t since_ns = 0;
  Word posted = 0;       // MPI's request for the descriptor
  void* copy = nullptr;  // of the data, once it is kept
  MessageDescriptor descriptor{};
};

struct SendArguments {
  const void* data;
  int count;
  Word type;
  int destination;
  int tag;
  Word comm;
};

// Bytes of a message that may be announced, by its size and type alone; else 0.
std::size_t large_bytes(const SendArguments&) noexcept;
// A slot for this message, armed; null where it is to be MPI's own. `acknowledged`: the receiver is
// to send a message of no bytes on ranks.comm, its tag the number of the slot.
Outgoing* begin(const SendArguments&, std::size_t bytes, bool acknowledged) noexcept;
// Sends the descriptor. A code of MPI's: then the message is no more.
int post(Outgoing&, const SendArguments&, bool synchronous) noexcept;
// Whether the receiver has all data, or a copy of it is kept: the program may use its buffer.
// Copies as well where the receiver wants that; past the patience copies the data away.
bool is_over(Outgoing&) noexcept;
// The same without a copy for the receiver's sake alone: it may be long.
bool is_copied(const Outgoing&) noexcept;
bool is_kept(const Outgoing&) noexcept;
// Copies the data away, so that the program's send is complete; false where it cannot be now.
bool keep(Outgoing&) noexcept;
// What has no descriptor yet is no more.
void withdraw(Outgoing&) noexcept;
// The receiver is dead, and has not received the message: nobody will.
bool is_lost(const Outgoing&) noexcept;
// The program's send is complete. The slot is free when the receiver has its data.
void leave(Outgoing&) noexcept;
int number(const Outgoing&) noexcept;  // of its slot

// Frees what has been received since.
void sweep() noexcept;
// MPI is about to end: keeps what nobody has taken, and waits for MPI's own requests.
void end_outbox() noexcept;

}  // namespace ropewalk::preload::messages
