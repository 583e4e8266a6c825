#include "taking.hpp"

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <vector>

#include "datatypes.hpp"
#include "envelope.hpp"
#include "local_mpi.hpp"
#include "message_lock.hpp"
#include "message_mpi.hpp"
#include "message_peers.hpp"
#include "mpi/datatypes.hpp"
#include "os/relax.hpp"
#include "ropewalk/memory.hpp"
#include "stash.hpp"

namespace ropewalk::preload::messages {
namespace {

constexpr std::size_t least_piece = std::size_t{32} << 10;
constexpr std::size_t most_piece = std::size_t{256} << 10;
// With so many pieces, two ranks that copy together end at about the same time.
constexpr std::size_t pieces_wanted = 16;

// Lets MPI move data between two buffers of this process, one of which has gaps. Two threads at a
// time would get each other's.
int copy_by_mpi(const void* from, int from_count, Word from_type, void* to, int to_count,
                Word to_type) noexcept {
  const MessageLock lock;
  return real.sendrecv(from, from_count, from_type, 0, 0, to, to_count, to_type, 0, 0,
                       ranks.self.value, reinterpret_cast<void*>(abi().status_ignore));
}

// Reads the first bytes of what was received. Returns false where MPI cannot unpack them.
bool first_bytes(const Destination& to, MessageDescriptor& found) noexcept {
  if (to.direct) {
    std::memcpy(&found, to.buffer, sizeof found);
    return true;
  }
  const std::size_t each = to.elements.bytes;
  const std::size_t elements = (sizeof found + each - 1) / each;
  if (each * elements > INT_MAX) return false;
  try {
    std::vector<std::byte> bytes(each * elements);
    const int code =
        copy_by_mpi(to.buffer, static_cast<int>(elements), to.elements.type.value, bytes.data(),
                    static_cast<int>(bytes.size()), mpi::byte_type().value);
    if (code != 0) return false;
    std::memcpy(&found, bytes.data(), sizeof found);
    return true;
  } catch (...) {
    return false;
  }
}

// Copies the data, together with the sender if that waits and sees where the data goes. Where the
// sender dies in the middle of a piece, this rank copies everything anew.
void copy_together(EnvelopeSlot& slot, const MessagePeer& from, std::byte* to,
                   const std::byte* data) noexcept {
  const kernels::Stores stores = stores_for(slot.length);
  copy_pieces(slot, to, data, stores);
  for (unsigned looks = 1; !all_copied(slot); ++looks) {
    os::relax();
    constexpr unsigned looks_per_check = 1U << 16;
    if (looks % looks_per_check == 0 && node::is_dead(*from.process)) {
      return kernels::copy(to, data, slot.length, stores);
    }
  }
}

std::uint64_t target_of(const Destination& to, std::size_t bytes) noexcept {
  try {
    Arena& arena = Arena::process();
    arena.note_communicated(to.buffer, bytes);
    if (!arena.contains(to.buffer, bytes)) return nowhere;
    arena.make_huge(to.buffer, bytes);
    return arena.offset(to.buffer);
  } catch (...) {
    return nowhere;
  }
}

// Copies what there is room for. It gives MPI no more than that: Open MPI 5.0.11 writes all of a
// message from a process to itself, even where it is too long for the receive.
int copy_by_this_rank(const Destination& to, const std::byte* data, std::size_t bytes) noexcept {
  const std::size_t fits = std::min(bytes, bytes_at(to));
  int code = 0;
  if (to.direct) {
    kernels::copy(to.buffer, data, fits, stores_for(fits));
  } else {
    // A message that goes through memory has less than 2 GiB, and so needs no more elements.
    const auto count = static_cast<int>(std::min<Count>(to.count, INT_MAX));
    code = copy_by_mpi(data, static_cast<int>(fits), mpi::byte_type().value, to.buffer, count,
                       to.elements.type.value);
  }
  return code == 0 && fits < bytes ? error_truncate() : code;
}

void acknowledge(const MessageDescriptor& descriptor, const MessagePeer& sender) noexcept {
  // Not by a send that waits, since the caller may hold the lock.
  Word request = 0;
  const int code = real.isend(nullptr, 0, mpi::byte_type().value, sender.place,
                              static_cast<int>(descriptor.slot), ranks.comm.value, &request);
  if (code == 0) real.request_free(&request);
}

// An element that has more than INT_MAX bytes cannot be unpacked, since MPI has no count for it.
Taken unreadable() {
  Taken taken;
  taken.code = error_code(
      "a message into a datatype of more than 2 GiB an element; set ROPEWALK_MESSAGES=off");
  return taken;
}

}  // namespace

Taken receive(const Destination& to, const MessageDescriptor& descriptor,
              const MessagePeer& sender) noexcept {
  EnvelopeSlot& slot = sender.slots[descriptor.slot];
  const std::size_t bytes = descriptor.length;
  const bool together = to.direct && bytes <= bytes_at(to);
  const std::uint64_t target = together ? target_of(to, bytes) : nowhere;
  const std::uint64_t piece =
      std::clamp<std::uint64_t>(bytes / pieces_wanted, least_piece, most_piece);
  const auto claimed = claim(slot, target, piece, [&] { return node::is_dead(*sender.process); });
  if (!claimed) return {};  // this does not happen: nobody else can have claimed it
  const std::byte* data = sender.process->base + claimed->place;
  Taken taken;
  taken.bytes = static_cast<std::int64_t>(std::min(bytes, bytes_at(to)));
  if (together) {
    copy_together(slot, sender, static_cast<std::byte*>(to.buffer), data);
  } else {
    taken.code = copy_by_this_rank(to, data, bytes);
  }
  const bool told = slot.acknowledged && !claimed->kept;
  // This release pairs with the acquire in is_copied().
  slot.state.store(State::copied, std::memory_order_release);
  if (told) acknowledge(descriptor, sender);
  return taken;
}

Taken receive_bytes(const Destination& to, const std::byte* data, std::size_t bytes) noexcept {
  Taken taken;
  taken.bytes = static_cast<std::int64_t>(std::min(bytes, bytes_at(to)));
  taken.code = copy_by_this_rank(to, data, bytes);
  return taken;
}

bool describe(void* buffer, Count count, Word type, Word comm, Destination& to) noexcept {
  if (count < 0) return false;
  const FoundElements elements = elements_of(type);
  if (!elements) return false;
  to.buffer = buffer;
  to.count = count;
  to.elements = *elements;
  to.elements.type = {clean(type)};
  to.direct = !elements->packed;
  to.comm = clean(comm);
  return true;
}

bool may_be_announced(void* buffer, Count count, Word type, Word comm, Destination& to) noexcept {
  return count > 0 && may_be_large(type, count) && describe(buffer, count, type, comm, to) &&
         may_be_announced(to);
}

bool may_be_large_of(Word type, Count count) noexcept {
  const mpi::Datatype given{clean(type)};
  if (mpi::library().datatypes.find(given.value)) {
    last_predefined.store(given.value, std::memory_order_relaxed);
    return false;
  }
  if (given == mpi::datatype_null()) return false;
  try {
    const auto bytes = static_cast<std::size_t>(mpi::type_size(given));
    return bytes * static_cast<std::size_t>(count) >= ranks.limits.least_bytes;
  } catch (...) {  // MPI refuses the type, as it will in the call
    return false;
  }
}

bool may_be_announced(const Destination& to) noexcept {
  return bytes_at(to) >= ranks.limits.least_bytes;
}

std::size_t bytes_at(const Destination& to) noexcept {
  return to.elements.bytes * static_cast<std::size_t>(to.count);
}

void* copy_of(const Destination& to) noexcept {
  const std::size_t bytes = bytes_at(to);
  void* copy = std::malloc(bytes + 1);
  if (copy == nullptr || bytes == 0) return copy;
  if (to.direct) return std::memcpy(copy, to.buffer, bytes);
  try {
    mpi::pack(to.buffer, static_cast<std::size_t>(to.count), to.elements.type, copy, ranks.self);
    return copy;
  } catch (...) {
    std::free(copy);
    return nullptr;
  }
}

KeptType::KeptType(Destination& to) noexcept {
  if (!ranks.threads || to.direct) return;
  try {
    own_ = one_of(to.elements.type);
    to.elements.type = own_;
    owns_ = true;
  } catch (...) {  // without memory the program's type has to do
  }
}
KeptType::~KeptType() {
  if (owns_) let_go(own_);
}

Taken take(const Destination& to, const void* status) noexcept {
  int bytes = 0;
  if (real.get_count(status, mpi::byte_type().value, &bytes) != 0) return {};
  if (bytes != static_cast<int>(descriptor_bytes) || !ranks.ready) return {};
  MessageDescriptor descriptor{};
  if (!first_bytes(to, descriptor)) {
    return Stash::may_be_descriptor(to.comm, status) ? unreadable() : Taken{};
  }
  const MessagePeer* sender = sender_of(descriptor);
  return sender == nullptr ? Taken{} : receive(to, descriptor, *sender);
}

void mend(const Taken& taken, void* status) noexcept {
  if (taken.tells_status) {
    std::byte* const fields = static_cast<std::byte*>(status);
    std::memcpy(fields + abi().status_source, &taken.source, sizeof taken.source);
    std::memcpy(fields + abi().status_tag, &taken.tag, sizeof taken.tag);
    if (taken.cancelled) real.status_set_cancelled(status, 1);
  }
  if (taken.bytes < 0) return;
  real.status_set_elements_x(status, mpi::byte_type().value, taken.bytes);
}

}  // namespace ropewalk::preload::messages
