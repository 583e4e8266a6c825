#include "outbox.hpp"

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstring>
#include <vector>

#include "datatypes.hpp"
#include "local_mpi.hpp"
#include "message_lock.hpp"
#include "message_mpi.hpp"
#include "never_destroyed.hpp"
#include "os/clock.hpp"
#include "ropewalk/memory.hpp"
#include "statistics.hpp"
#include "taking.hpp"

namespace ropewalk::preload::messages {
namespace {

struct Outbox {
  std::vector<Outgoing> messages;  // one for each slot
  std::size_t turn = 0;
  std::size_t ended = 0;  // number of complete sends whose slots are not free yet
  std::size_t kept_bytes = 0;
  std::uint64_t serial = 0;
};
NeverDestroyed<Outbox> the_outbox;
Outbox& outbox = the_outbox.value;

// A message beyond the bytes that are kept freely waits for this many times the patience.
constexpr std::int64_t longer = 100;

Outgoing* free_place() noexcept {
  if (outbox.messages.empty()) {
    try {
      outbox.messages.resize(ranks.limits.slots);
    } catch (...) {
      return nullptr;
    }
  }
  const std::size_t count = outbox.messages.size();
  for (std::size_t i = 0; i < count; ++i) {
    Outgoing& place = outbox.messages[outbox.turn++ % count];
    if (!place.used) return &place;
  }
  return nullptr;
}

MessageDescriptor describe(const Outgoing& message) noexcept {
  MessageDescriptor made{};
  made.key = message.peer->key;
  made.inode = ranks.inode;
  made.sender = static_cast<std::uint64_t>(ranks.place);
  made.slot = static_cast<std::uint64_t>(number(message));
  made.serial = message.slot->serial;
  made.length = message.bytes;
  made.checksum = checksum_of(made);
  return made;
}

// The arena is told of all memory that could go through it, wherever it lies.
bool is_in_arena(const void* data, std::size_t bytes) noexcept {
  try {
    Arena& arena = Arena::process();
    arena.note_communicated(data, bytes);
    if (!arena.contains(data, bytes)) return false;
    arena.make_huge(data, bytes);
    return true;
  } catch (...) {  // there is no arena
    return false;
  }
}

void look_at_posted(Outgoing& message) noexcept {
  if (message.matched) return;
  int flag = 0;
  real.test(&message.posted, &flag, reinterpret_cast<void*>(abi().status_ignore));
  message.matched = flag != 0;
}

void free_copy(Outgoing& message) noexcept {
  if (message.copy == nullptr) return;
  Arena::process().deallocate(message.copy);
  outbox.kept_bytes -= message.bytes;
  message.copy = nullptr;
}

// Frees the slot of a message whose send has ended, once the receiver has the data and MPI needs
// the descriptor no longer.
void free_if_received(Outgoing& message) noexcept {
  if (!is_copied(message)) return;
  look_at_posted(message);
  if (!message.matched) return;
  free_copy(message);
  message.slot->state.store(State::free, std::memory_order_relaxed);
  message.used = false;
  --outbox.ended;
}

// A message that nobody takes, and of which no copy can be made, may be a hang of the program.
void tell_if_untaken(Outgoing& message, std::int64_t waited_ns) noexcept {
  constexpr std::int64_t second = 1'000'000'000;
  constexpr std::int64_t long_ns = 60 * second;
  if (message.told || waited_ns < long_ns) return;
  message.told = true;
  tell_untaken(message.peer->world_rank, message.bytes, waited_ns / second);
}

bool may_keep(const Outgoing& message, std::int64_t waited_ns) noexcept {
  if (waited_ns < ranks.limits.patience_ns) return false;
  if (outbox.kept_bytes + message.bytes <= ranks.limits.kept_bytes) return true;
  return waited_ns >= ranks.limits.patience_ns * longer;
}

}  // namespace

int number(const Outgoing& message) noexcept {
  return static_cast<int>(message.slot - ranks.slots);
}

std::size_t large_bytes(const SendArguments& send) noexcept {
  return ranks.sends ? later_bytes(send) : 0;
}

std::size_t later_bytes(const SendArguments& send) noexcept {
  if (send.count <= 0) return 0;
  if (!may_be_large(send.type, send.count)) return 0;
  const auto count = static_cast<std::size_t>(send.count);
  const FoundElements elements = elements_of(send.type);
  if (!elements || !is_even(send.type)) return 0;
  const std::size_t bytes = elements->bytes * count;
  return bytes < ranks.limits.least_bytes || bytes > INT_MAX ? 0 : bytes;
}

Outgoing* begin(const SendArguments& send, std::size_t bytes, bool acknowledged) noexcept {
  const MessageLock lock;
  const MessagePeer* peer = peer_of(send.comm, send.destination);
  if (peer == nullptr || bytes < peer->least_bytes) return nullptr;
  if (!is_in_arena(send.data, bytes)) return nullptr;
  // A probe of the receiver receives the descriptor, and would complete the send.
  if (send.synchronous && peer->notes->probes.load(std::memory_order_relaxed)) return nullptr;
  sweep();
  Outgoing* message = free_place();
  if (message == nullptr) return nullptr;
  *message = Outgoing{};
  message->used = true;
  message->slot = ranks.slots + (message - outbox.messages.data());
  message->peer = peer;
  message->data = static_cast<const std::byte*>(send.data);
  message->bytes = bytes;
  message->since_ns = os::steady_ns();
  arm(*message->slot, peer->place, ++outbox.serial, Arena::process().offset(send.data), bytes,
      acknowledged);
  message->descriptor = describe(*message);
  return message;
}

int post(Outgoing& message, const SendArguments& send) noexcept {
  message.synchronous = send.synchronous;
  const auto isend = send.synchronous ? real.issend : real.isend;
  const int code = isend(&message.descriptor, descriptor_bytes, mpi::byte_type().value,
                         send.destination, send.tag, send.comm, &message.posted);
  if (code != 0) withdraw(message);
  return code;
}

bool is_copied(const Outgoing& message) noexcept {
  // This acquire pairs with the release in receive(), before which the receiver has read all data.
  return message.slot->state.load(std::memory_order_acquire) == State::copied;
}

bool is_kept(const Outgoing& message) noexcept { return message.copy != nullptr; }

bool is_over(Outgoing& message) noexcept {
  if (is_kept(message) || is_copied(message)) return true;
  // This acquire pairs with the release in claim(), before which the receiver has written where the
  // data goes.
  if (message.slot->state.load(std::memory_order_acquire) == State::claimed) {
    if (message.helped) return false;
    message.helped = true;
    help(*message.slot, message.peer->process->base, message.data, stores_for(message.bytes));
    return is_copied(message);
  }
  const std::int64_t waited_ns = os::steady_ns() - message.since_ns;
  if (may_keep(message, waited_ns) && keep(message)) return true;
  tell_if_untaken(message, waited_ns);
  return false;
}

bool keep(Outgoing& message) noexcept {
  if (message.synchronous) {
    look_at_posted(message);
    if (!message.matched) return false;
  }
  void* copy = nullptr;
  try {
    copy = Arena::process().allocate(message.bytes);
  } catch (...) {
    return false;
  }
  if (!begin_move(*message.slot)) {
    Arena::process().deallocate(copy);
    return false;
  }
  kernels::copy(copy, message.data, message.bytes, stores_for(message.bytes));
  message.copy = copy;
  outbox.kept_bytes += message.bytes;
  end_move(*message.slot, Arena::process().offset(copy));
  return true;
}

void withdraw(Outgoing& message) noexcept {
  const MessageLock lock;
  message.slot->state.store(State::free, std::memory_order_relaxed);
  message.used = false;
}

bool is_lost(const Outgoing& message) noexcept {
  return node::is_dead(*message.peer->process) && !is_copied(message);
}

bool is_found_dead(Outgoing& message) noexcept {
  constexpr unsigned calls_per_look = 1U << 12;
  return ++message.looks % calls_per_look == 0 && node::is_dead(*message.peer->process);
}

int code_of_loss(const Outgoing& message) noexcept {
  std::array<char, 128> text{};
  std::snprintf(text.data(), text.size(),
                "rank %d (process %d) has died before it received a message",
                message.peer->world_rank, message.peer->process->process);
  return error_code(text.data());
}

void leave(Outgoing& message) noexcept {
  const MessageLock lock;
  message.ended = true;
  ++outbox.ended;
  free_if_received(message);
}

void sweep() noexcept {
  if (outbox.ended == 0) return;
  for (Outgoing& message : outbox.messages) {
    if (message.used && message.ended) free_if_received(message);
  }
}

void end_outbox() noexcept {
  for (Outgoing& message : outbox.messages) {
    if (!message.used || is_lost(message)) continue;  // MPI may never complete its request
    if (!message.matched) {
      real.wait(&message.posted, reinterpret_cast<void*>(abi().status_ignore));
      message.matched = true;
    }
    keep(message);
  }
}

}  // namespace ropewalk::preload::messages
