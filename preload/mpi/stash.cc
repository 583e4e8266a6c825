#include "stash.hpp"

#include <cstring>
#include <new>
#include <utility>

#include "communicators.hpp"
#include "datatypes.hpp"
#include "error_handlers.hpp"
#include "local_mpi.hpp"
#include "message_counts.hpp"
#include "message_lock.hpp"
#include "messages.hpp"
#include "never_destroyed.hpp"
#include "pending.hpp"

namespace ropewalk::preload::messages {

namespace {
NeverDestroyed<Stash> the_stash;
}
Stash& stash = the_stash.value;

namespace {

int field(const void* status, std::size_t at) noexcept {
  int value = 0;
  std::memcpy(&value, static_cast<const std::byte*>(status) + at, sizeof value);
  return value;
}

bool matches(const MessagePattern& wanted, const MessagePattern& found) noexcept {
  return wanted.comm == found.comm &&
         (wanted.source == found.source || wanted.source == abi().any_source) &&
         (wanted.tag == found.tag || wanted.tag == abi().any_tag);
}

int bytes_of(const void* status) noexcept {
  int bytes = 0;
  return real.get_count(status, mpi::byte_type().value, &bytes) == 0 ? bytes : -1;
}

// Makes a request that is complete, for a receive that has been served already.
int completed_request(Word& request) noexcept {
  constexpr int tag = 1;  // copies within this process have tag 0
  const int code =
      real.irecv(nullptr, 0, mpi::byte_type().value, 0, tag, ranks.self.value, &request);
  if (code != 0) return code;
  return real.send(nullptr, 0, mpi::byte_type().value, 0, tag, ranks.self.value);
}

}  // namespace

Stashed* Stash::find(const MessagePattern& wanted) noexcept {
  for (Stashed& one : messages_) {
    if (matches(wanted, one.from)) return &one;
  }
  return nullptr;
}

std::optional<Stashed> Stash::take(const MessagePattern& wanted) noexcept {
  for (auto at = messages_.begin(); at != messages_.end(); ++at) {
    if (!matches(wanted, at->from)) continue;
    std::optional<Stashed> taken(*at);
    messages_.erase(at);
    return taken;
  }
  return std::nullopt;
}

bool Stash::may_be_descriptor(Word comm, const void* status) noexcept {
  if (bytes_of(status) != static_cast<int>(descriptor_bytes)) return false;
  // In a callback of a communicator that is being freed nobody knows its ranks any more.
  if (BeingFreed::is(comm)) return ranks.ready;
  const MessagePeer* peer = peer_of(comm, field(status, abi().status_source));
  return peer != nullptr && sends_here(*peer);
}

int Stash::extract(const MessagePattern& wanted) noexcept {
  for (bool more = true; more;) {
    std::list<Stashed> made;
    try {
      made.emplace_back();
    } catch (const std::bad_alloc&) {
      return raise({wanted.comm}, "no memory to keep a probed message in mind");
    }
    Stashed& one = made.front();
    int flag = 0;
    int code =
        real.improbe(wanted.source, abi().any_tag, wanted.comm, &flag, &one.message, &one.status);
    if (code != 0 || flag == 0) return code;
    one.from = {wanted.source, field(&one.status, abi().status_tag), wanted.comm};
    if (bytes_of(&one.status) == static_cast<int>(descriptor_bytes)) code = open(one);
    more = one.from.tag != wanted.tag;
    messages_.splice(messages_.end(), made);
    if (code != 0) return code;
  }
  return 0;
}

void Stash::forget(Word comm) noexcept {
  messages_.remove_if([&](const Stashed& one) { return one.from.comm == comm; });
}

namespace {

bool has_requests(Word comm) noexcept {
  const MessageLock lock;
  return pending.uses(comm);
}

}  // namespace

void finish_freed(Word comm) noexcept {
  if (pending.only_collectives()) return;
  wait_until([&] { return !pending.uses(comm, PendingRequests::Kind::freed); });
}

void begin_free(Word comm) noexcept {
  // MPI may wait for another thread meanwhile, and that for the lock.
  const Word stand_in = has_requests(comm) ? with_handler_of(comm) : ranks.self.value;
  const MessageLock lock;
  pending.forget(comm, stand_in);
  // Another thread may get the handle for a communicator of its own as soon as MPI has freed it.
  if (ranks.threads && !stash.empty()) stash.forget(comm);
}

// The program's callbacks have received from the communicator until now.
void end_free(Word comm) noexcept {
  if (ranks.threads) return;
  const MessageLock lock;
  if (!stash.empty()) stash.forget(comm);
}

int open(Stashed& one) noexcept {
  const int code =
      real.mrecv(one.bytes.data(), static_cast<int>(one.bytes.size()), mpi::byte_type().value,
                 &one.message, reinterpret_cast<void*>(abi().status_ignore));
  if (code != 0) return code;
  one.opened = true;
  MessageDescriptor descriptor;
  std::memcpy(&descriptor, one.bytes.data(), sizeof descriptor);
  one.sender = sender_of(descriptor);
  if (one.sender == nullptr) return 0;
  return real.status_set_elements_x(&one.status, mpi::byte_type().value,
                                    static_cast<Count>(descriptor.length));
}

Taken deliver(const Stashed& one, const Destination& to) noexcept {
  Taken taken;
  if (one.sender != nullptr) {
    MessageDescriptor descriptor;
    std::memcpy(&descriptor, one.bytes.data(), sizeof descriptor);
    taken = receive(to, descriptor, *one.sender);
  } else {
    taken = receive_bytes(to, one.bytes.data(), one.bytes.size());
  }
  taken.tells_status = true;
  taken.source = one.from.source;
  taken.tag = one.from.tag;
  return taken;
}

void show(const Stashed& one, void* status) noexcept {
  if (!is_ignored(status)) copy_status(&one.status, status);
}

int receive_stashed(Stashed& one, void* buffer, Count count, Word type, void* status) noexcept {
  Destination to;
  if (!one.opened) return receive_matched(buffer, count, type, &one.message, status);
  if (!describe(buffer, count, type, one.from.comm, to)) {
    return raise({one.from.comm}, "a receive whose count or datatype MPI does not take");
  }
  const Taken taken = deliver(one, to);
  show(one, status);
  if (!is_ignored(status)) mend(taken, status);
  return taken.code == 0 ? 0 : raise_code(to.comm, taken.code);
}

int start_stashed(Stashed& one, void* buffer, Count count, Word type, void* request) noexcept {
  Destination to;
  Word handle = 0;
  const ProgramRequests given(request);
  if (!one.opened) {
    const int code = start_matched(buffer, count, type, &one.message, &handle);
    if (code == 0) given.set(0, handle);
    return code;
  }
  if (!describe(buffer, count, type, one.from.comm, to)) {
    return raise({one.from.comm}, "a receive whose count or datatype MPI does not take");
  }
  const MessageLock lock;
  if (const int code = completed_request(handle); code != 0) return code;
  try {
    pending.add_received(handle, to, deliver(one, to));
  } catch (const std::bad_alloc&) {
    real.wait(&handle, reinterpret_cast<void*>(abi().status_ignore));
    return raise({one.from.comm}, "no memory to keep a request in mind");
  }
  given.set(0, handle);
  return 0;
}

}  // namespace ropewalk::preload::messages
