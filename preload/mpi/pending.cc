#include "pending.hpp"

#include <utility>

#include "local_mpi.hpp"
#include "messages.hpp"
#include "windows.hpp"

namespace ropewalk::preload::messages {

PendingRequests pending;

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

}  // namespace

Pending* PendingRequests::find(Word handle) noexcept {
  const auto found = entries_.find(handle);
  return found == entries_.end() ? nullptr : &found->second;
}

void PendingRequests::add_receive(Word handle, const Destination& to) {
  Pending entry;
  entry.to = to;
  if (!mpi::library().datatypes.find(to.elements.type.value)) {
    entry.to.elements.type = duplicate(to.elements.type);  // the program may free its own
    entry.owns_type = true;
  }
  try {
    entries_.insert_or_assign(handle, entry);
  } catch (...) {
    if (entry.owns_type) let_go(entry.to.elements.type);
    throw;
  }
}

void PendingRequests::add_received(Word handle, const Destination& to, const Taken& taken) {
  Pending entry;
  entry.to = to;
  entry.taken = taken;
  entry.settled = true;
  entries_.insert_or_assign(handle, entry);
}

void PendingRequests::add_send(Word handle, Outgoing& out, Word comm) {
  Pending entry;
  entry.out = &out;
  entry.to.comm = comm;
  entries_.insert_or_assign(handle, entry);
}

PendingRequests::Entries::iterator PendingRequests::drop(Entries::iterator at) noexcept {
  Pending& entry = at->second;
  if (entry.owns_type) let_go(entry.to.elements.type);
  if (entry.out != nullptr) leave(*entry.out);
  return entries_.erase(at);
}

void PendingRequests::erase(Word handle) noexcept {
  const auto found = entries_.find(handle);
  if (found != entries_.end()) drop(found);
}

bool PendingRequests::settle(Word handle, Pending& entry) noexcept {
  if (entry.settled) return true;
  if (entry.out != nullptr) return settle_send(handle, entry);
  mpi::RawStatus status;
  if (!is_complete(handle, status)) return false;
  entry.settled = true;
  if (entry.cancelling && is_cancelled(status)) return true;
  entry.taken = take(entry.to, &status);
  return true;
}

// The receiver sends an acknowledgement where it has claimed the program's buffer. Where the data
// was kept, or the receiver has died, it sends none, and MPI's receive of the acknowledgement is
// cancelled.
bool PendingRequests::settle_send(Word handle, Pending& entry) noexcept {
  Outgoing& out = *entry.out;
  const bool over = is_over(out);
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

bool PendingRequests::take_some() noexcept {
  sweep();
  int looks = 0;
  auto at = entries_.upper_bound(turn_);
  for (std::size_t left = entries_.size(); left > 0 && looks < most_looks; --left) {
    if (at == entries_.end()) at = entries_.begin();
    turn_ = at->first;
    Pending& entry = at->second;
    const bool ours = !entry.settled && (entry.out == nullptr || entry.freed);
    if (ours) ++looks;
    const bool settled = ours ? settle(at->first, entry) : entry.settled;
    if (settled && entry.freed) {
      Word request = at->first;
      real.wait(&request, reinterpret_cast<void*>(abi().status_ignore));
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
  if (!pending.empty()) pending.take_some();
}

void end() noexcept {
  if (!ranks.understands) return;
  pending.end();
  end_outbox();
}

void PendingRequests::end() noexcept {
  for (auto at = entries_.begin(); at != entries_.end();) {
    if (at->second.out != nullptr && at->second.freed) keep(*at->second.out);
    Word request = at->first;
    if (settle(at->first, at->second)) {
      real.wait(&request, reinterpret_cast<void*>(abi().status_ignore));
    } else if (at->second.freed) {
      real.request_free(&request);
    }
    at = drop(at);
  }
}

}  // namespace ropewalk::preload::messages
