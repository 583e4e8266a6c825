#include "pending.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "datatypes.hpp"
#include "local_mpi.hpp"
#include "messages.hpp"
#include "never_destroyed.hpp"
#include "windows.hpp"

namespace ropewalk::preload::messages {

namespace {
NeverDestroyed<PendingRequests> the_pending;
}
PendingRequests& pending = the_pending.value;

namespace {

// A look at one of MPI's requests costs some 50 ns, so that only so many are looked at in a call.
constexpr int most_looks = 16;

bool is_complete(Word handle, mpi::RawStatus& status) noexcept {
  int flag = 0;
  real.request_get_status(handle, &flag, &status);
  return flag != 0;
}

bool is_cancelled(const mpi::RawStatus& status) noexcept {
  int flag = 0;
  real.test_cancelled(&status, &flag);
  return flag != 0;
}

// Adds an entry with a type of its own, since the program may free its. A duplicate would have the
// program's attributes as well, whose functions would be called under the lock.
void add_with_type(std::map<Word, Pending>& entries, Word handle, Pending& entry) {
  mpi::Datatype& type = entry.to.elements.type;
  if (!mpi::library().datatypes.find(type.value)) {
    type = one_of(type);
    entry.owns_type = true;
  }
  try {
    entries.insert_or_assign(handle, entry);
  } catch (...) {
    if (entry.owns_type) let_go(type);
    throw;
  }
}

// Notes what MPI's status says, in place of which the program is given another.
void tell_status(Taken& taken, int code, const mpi::RawStatus& status) noexcept {
  if (code != 0) taken.code = code;
  taken.raised = code != 0;
  Count bytes = 0;  // an int would not do for a message of more than 2 GiB
  if (taken.bytes < 0 && real.get_elements_x(&status, mpi::byte_type().value, &bytes) == 0) {
    taken.bytes = bytes;
  }
  const mpi::Status seen = mpi::read_status(abi(), status);
  taken.tells_status = true;
  taken.source = seen.source;
  taken.tag = seen.tag;
}

// Looks at the receiving half of an exchange, and returns true where it is over.
bool is_received(Pending& entry) noexcept {
  if (entry.inner == 0) return true;
  int flag = 0;
  mpi::RawStatus status;
  const int code = real.test(&entry.inner, &flag, &status);
  if (flag == 0 && code == 0) return false;
  if (entry.large && code == 0) entry.taken = take(entry.to, &status);
  tell_status(entry.taken, code, status);
  entry.inner = 0;
  return true;
}

bool is_sent(Pending& entry) noexcept {
  if (entry.sending == 0) return true;
  int flag = 0;
  const int code = real.test(&entry.sending, &flag, reinterpret_cast<void*>(abi().status_ignore));
  if (flag == 0 && code == 0) return false;
  if (entry.taken.code == 0) {
    entry.taken.code = code;
    entry.taken.raised = code != 0;
  }
  entry.sending = 0;
  return true;
}

// Looks at both halves of an exchange. Once they are over, the empty message to this process
// completes the request that the program has.
bool settle_exchange(Pending& entry) noexcept {
  const bool received = is_received(entry);
  if (!is_sent(entry) || !received) return false;
  entry.settled = true;
  complete_own(entry.tag);
  return true;
}

// Nothing in here may look at other requests: this may be in the middle of such a look.
bool settle_round(Pending& entry) noexcept {
  if (!entry.round->complete(entry.taken.code)) return false;
  entry.settled = true;
  complete_own(entry.tag);
  return true;
}

// Looks at a persistent receive, or at the receive of a message that the stash had matched. It is
// complete in MPI from then on, and the status is kept: MPICH 5.0.2 makes a persistent request
// inactive when it is only asked for its status, and forgets that.
bool settle_persistent(Word handle, Pending& entry) noexcept {
  Word request = entry.inner != 0 ? entry.inner : handle;
  int flag = 0;
  mpi::RawStatus status;
  const int code = real.test(&request, &flag, &status);
  if (flag == 0 && code == 0) return false;
  Taken& taken = entry.taken;
  taken.cancelled = entry.cancelling && is_cancelled(status);
  const bool announced = entry.inner == 0 && code == 0 && !taken.cancelled;
  if (announced) taken = take(entry.to, &status);
  tell_status(taken, code, status);
  entry.inner = 0;
  entry.apart = entry.settled = true;
  return true;
}

// The receiver sends an acknowledgement where it has claimed the program's buffer. Where the data
// was kept, or the receiver has died, it sends none, and MPI's receive of the acknowledgement is
// cancelled. A persistent send has none in any case.
bool settle_send(Word handle, Pending& entry) noexcept {
  Outgoing& out = *entry.out;
  const bool over = is_over(out);
  if (entry.persistent) {
    if (!over && is_found_dead(out) && is_lost(out)) entry.taken.code = code_of_loss(out);
    return entry.settled = over || entry.taken.code != 0;
  }
  if (!over || !is_kept(out)) {
    mpi::RawStatus status;
    entry.settled = over && is_complete(handle, status);
    if (entry.settled || !is_found_dead(out)) return entry.settled;
    if (is_lost(out)) entry.taken.code = code_of_loss(out);
  }
  Word request = handle;
  real.cancel(&request);
  entry.settled = true;
  return true;
}

}  // namespace

void end_use(Pending& entry) noexcept {
  if (entry.out != nullptr) leave(*entry.out);
  entry.out = nullptr;
  entry.settled = entry.cancelling = entry.apart = false;
  entry.taken = {};
}

void complete_freed(Word request, const Pending& entry) noexcept {
  real.wait(&request, reinterpret_cast<void*>(abi().status_ignore));
  if (entry.persistent) real.request_free(&request);
}

int make_own(Word& request, int& tag) noexcept {
  // These tags follow those of copies, completed requests and handed messages.
  constexpr int first_tag = 16;
  static int last = first_tag;
  tag = last = last == ranks.last_tag ? first_tag : last + 1;
  return real.irecv(nullptr, 0, mpi::byte_type().value, 0, tag, ranks.self.value, &request);
}
void complete_own(int tag) noexcept {
  real.send(nullptr, 0, mpi::byte_type().value, 0, tag, ranks.self.value);
}

Pending described(void* buffer, Count count, Word type, const MessagePattern& from) noexcept {
  Pending made;
  made.from = from;
  made.large = may_be_announced(buffer, count, type, from.comm, made.to);
  made.described = made.large || describe(buffer, count, type, from.comm, made.to);
  if (made.described) return made;
  made.to.buffer = buffer;
  made.to.count = count;
  made.to.elements.type = {clean(type)};
  made.to.comm = from.comm;
  return made;
}

Pending* PendingRequests::find(Word handle) noexcept {
  if (Pending* collective = collectives_.find_active(handle)) return collective;
  const auto found = entries_.find(handle);
  return found == entries_.end() ? nullptr : &found->second;
}

void PendingRequests::add_receive(Word handle, const Destination& to) {
  Pending entry;
  entry.to = to;
  add_with_type(entries_, handle, entry);
  count();
}

Pending& PendingRequests::add_exchange(Word handle, const Pending& receive) {
  Pending entry = receive;
  entry.exchange = true;
  add_with_type(entries_, handle, entry);
  count();
  return entries_.find(handle)->second;
}

void PendingRequests::add_round(Word handle, Word comm, int tag,
                                std::shared_ptr<StartedRound> round) {
  Pending entry;
  entry.exchange = true;
  entry.tag = tag;
  entry.round = std::move(round);
  entry.to.comm = comm;
  entries_.insert_or_assign(handle, std::move(entry));
  count();
}

void PendingRequests::add_persistent(Word handle, const Pending& receive) {
  Pending entry = receive;
  entry.persistent = true;
  add_with_type(inactive_, handle, entry);
}

void PendingRequests::add_persistent(Word handle, const SendArguments& send, std::size_t bytes) {
  Pending entry;
  entry.persistent = true;
  entry.sends = true;
  entry.send = send;
  entry.send_bytes = bytes;
  entry.to.comm = send.comm;
  inactive_.insert_or_assign(handle, entry);
}

bool PendingRequests::uses(Word comm, Kind kind) const noexcept {
  const auto is_of = [comm](const auto& entry) { return entry.second.to.comm == comm; };
  if (kind == Kind::freed) {
    return std::ranges::any_of(
        entries_, [&](const auto& entry) { return entry.second.freed && is_of(entry); });
  }
  return collectives_.uses(comm) || std::ranges::any_of(entries_, is_of) ||
         std::ranges::any_of(inactive_, is_of);
}

void PendingRequests::forget(Word comm, Word stand_in) noexcept {
  collectives_.forget(comm, stand_in);
  for (Entries* entries : {&entries_, &inactive_}) {
    for (auto& [handle, entry] : *entries) {
      if (entry.to.comm != comm) continue;
      if (entry.sends) entry.send_bytes = 0;
      entry.to.comm = stand_in;
    }
  }
}

Pending* PendingRequests::find_inactive(Word handle) noexcept {
  if (Pending* collective = collectives_.find(handle)) {
    return collective->apart ? nullptr : collective;
  }
  const auto found = inactive_.find(handle);
  return found == inactive_.end() ? nullptr : &found->second;
}

Pending& PendingRequests::activate(Word handle) noexcept {
  const auto old = entries_.find(handle);
  if (old != entries_.end()) drop(old);
  Pending& active = entries_.insert(inactive_.extract(handle)).position->second;
  count();
  return active;
}

void PendingRequests::erase_inactive(Word handle) noexcept {
  if (collectives_.find(handle) != nullptr) return collectives_.erase(handle);
  const auto found = inactive_.find(handle);
  if (found == inactive_.end()) return;
  if (found->second.owns_type) let_go(found->second.to.elements.type);
  inactive_.erase(found);
}

void PendingRequests::add_received(Word handle, const Destination& to, const Taken& taken) {
  Pending entry;
  entry.to = to;
  entry.taken = taken;
  entry.settled = true;
  entries_.insert_or_assign(handle, entry);
  count();
}

void PendingRequests::add_send(Word handle, Outgoing& out, Word comm) {
  Pending entry;
  entry.out = &out;
  entry.to.comm = comm;
  entries_.insert_or_assign(handle, entry);
  count();
}

PendingRequests::Entries::iterator PendingRequests::drop(Entries::iterator at) noexcept {
  Pending& entry = at->second;
  if (entry.owns_type) let_go(entry.to.elements.type);
  if (entry.out != nullptr) leave(*entry.out);
  if (entry.sending == 0) std::free(entry.copy);  // otherwise MPI may still read it
  const auto next = entries_.erase(at);
  count();
  return next;
}

void PendingRequests::free(Pending& entry) noexcept {
  entry.freed = true;
  if (entry.collective != nullptr) collectives_.free(entry);
}

void PendingRequests::erase(Word handle) noexcept {
  if (Pending* collective = collectives_.find(handle)) return collectives_.end_round(*collective);
  const auto found = entries_.find(handle);
  if (found == entries_.end()) return;
  Pending& entry = found->second;
  if (!entry.persistent) return static_cast<void>(drop(found));
  end_use(entry);
  if (inactive_.contains(handle)) erase_inactive(handle);
  inactive_.insert(entries_.extract(found));
  count();
}

bool PendingRequests::settle(Word handle, Pending& entry) noexcept {
  if (entry.settled) return true;
  if (entry.out != nullptr) return settle_send(handle, entry);
  if (entry.collective != nullptr) {
    return entry.settled = entry.collective->complete(entry.taken.code);
  }
  if (entry.round != nullptr) return settle_round(entry);
  if (entry.persistent) return settle_persistent(handle, entry);
  if (entry.exchange) return settle_exchange(entry);
  mpi::RawStatus status;
  if (!is_complete(handle, status)) return false;
  entry.settled = true;
  if (entry.cancelling && is_cancelled(status)) return true;
  entry.taken = take(entry.to, &status);
  return true;
}

bool PendingRequests::take_some() noexcept {
  if (taking_) return false;  // what an entry does makes MPI progress, which leads here again
  taking_ = true;
  const bool looked = take_some_of_all();
  taking_ = false;
  return looked;
}

bool PendingRequests::take_some_of_all() noexcept {
  sweep();
  collectives_.end_freed();
  int looks = 0;
  int rounds = 0;
  auto at = entries_.upper_bound(turn_);
  for (std::size_t left = entries_.size(); left > 0 && looks < most_looks && rounds < most_looks;
       --left) {
    if (at == entries_.end()) at = entries_.begin();
    turn_ = at->first;
    Pending& entry = at->second;
    const bool ours = !entry.settled && (entry.out == nullptr || entry.freed);
    // Of a send that was freed, or a round, MPI is not asked.
    if (ours && entry.out == nullptr) ++(entry.round == nullptr ? looks : rounds);
    const bool settled = ours ? settle(at->first, entry) : entry.settled;
    if (settled && entry.freed) {
      complete_freed(at->first, entry);
      at = drop(at);
    } else {
      ++at;
    }
  }
  return looks > 0;
}

void PendingRequests::look() noexcept {
  if (!take_some()) progress();
}

// A rank that waits in a collective may be the receiver that a sender waits for.
void look_in_collectives() noexcept {
  if (pending.empty()) return;
  if (const MessageLock lock{std::try_to_lock}) pending.take_some();
}

void stay() noexcept {
  for (;;) ::pause();
}

void end() noexcept {
  const MessageLock lock;
  pending.end();
  if (ranks.understands) end_outbox();
  ranks.ended = true;
  ranks.understands = false;  // what is called from here on is MPI's
}

void PendingRequests::end() noexcept {
  taking_ = true;  // a barrier that is completed here looks at nothing else
  collectives_.end();
  for (auto at = entries_.begin(); at != entries_.end();) {
    if (at->second.out != nullptr && at->second.freed) keep(*at->second.out);
    Word request = at->first;
    if (settle(at->first, at->second)) {
      real.wait(&request, reinterpret_cast<void*>(abi().status_ignore));
      if (at->second.persistent) real.request_free(&request);
    } else if (at->second.freed) {
      real.request_free(&request);
    }
    at = drop(at);
  }
  while (!inactive_.empty()) erase_inactive(inactive_.begin()->first);
}

}  // namespace ropewalk::preload::messages
