// This file serves MPI_Wait, MPI_Test and the like. A call that waits for no large message and no
// persistent collective is MPI's alone. Any other looks after these until nothing is left to do,
// and then has MPI complete the requests.
#include <algorithm>
#include <cstddef>
#include <vector>

#include "datatypes.hpp"
#include "message_mpi.hpp"
#include "pending.hpp"
#include "windows.hpp"

namespace ropewalk::preload {
namespace {

using namespace messages;

// Corrects the status of a request that MPI has completed. Returns an error code, or 0.
int mend_one(const Pending& entry, void* status) noexcept {
  if (is_ignored(status)) return entry.taken.code;
  if (entry.out != nullptr) {  // only MPI's receive of the acknowledgement may be cancelled
    real.status_set_cancelled(status, 0);
    return entry.taken.code;
  }
  mend(entry.taken, status);
  return entry.taken.code;
}

Word comm_of(const Pending& entry) noexcept { return entry.to.comm; }

// A Call keeps the handles of the requests of one call, since MPI nulls them when it completes the
// requests.
class Call {
 public:
  Call(int count, void* requests) : given_(requests) {
    if (count > 0) handles_.resize(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < handles_.size(); ++i) handles_[i] = given_.get(i);
  }
  std::size_t size() const noexcept { return handles_.size(); }
  Pending* entry(std::size_t at) const noexcept { return pending.find(handles_[at]); }
  // Looks at all of the requests, and returns true where all of ours are settled.
  bool settle_all() const noexcept {
    bool all = true;
    for (const Word handle : handles_) {
      Pending* entry = pending.find(handle);
      if (entry != nullptr && !pending.settle(handle, *entry)) all = false;
    }
    return all;
  }
  // Finishes a request that MPI has completed with this status. After an error of another request
  // MPI may not have completed it; then its handle still stands, and nothing is done.
  int complete(std::size_t at, void* status) const noexcept {
    Pending* entry = pending.find(handles_[at]);
    if (entry == nullptr) return 0;
    if (!entry->persistent && given_.get(at) == handles_[at]) return 0;
    finish(*entry, status);
    const int code = mend_one(*entry, status);
    if (code != 0 && !entry->taken.raised) failed_ = comm_of(*entry);
    const bool is_round = entry->round != nullptr;
    pending.erase(handles_[at]);
    if (is_round && windows_made) progress();  // as the blocking calls do, which looks at others
    return code;
  }
  // Has MPI complete a request of ours that is settled, and finishes it. Returns false for any
  // other.
  bool complete_settled(std::size_t at, void* status, int& code) const noexcept {
    const Pending* known = entry(at);
    if (known == nullptr || !known->settled) return false;
    code = 0;
    for (int flag = 0; flag == 0 && code == 0;) code = next.Test(given_.place(at), &flag, status);
    if (const int own = complete(at, status); own != 0) code = own;
    return true;
  }
  // The communicator of a request that failed by an error which nobody has raised yet; 0 for none.
  Word failed() const noexcept { return failed_; }
  bool has_ours() const noexcept {
    return std::ranges::any_of(handles_, [](Word one) { return pending.find(one) != nullptr; });
  }
  // Says whether this is an active persistent receive which MPI does not know to be active, and
  // skips among others.
  bool is_apart(std::size_t at) const noexcept {
    const Pending* found = entry(at);
    return found != nullptr && found->apart;
  }
  bool has_apart() const noexcept {
    for (std::size_t i = 0; i < size(); ++i) {
      if (is_apart(i)) return true;
    }
    return false;
  }
  // Has MPI fill the status of such a request, once it is settled. Returns false before.
  bool complete_apart(std::size_t at, void* status) const {
    if (!is_apart(at) || !entry(at)->settled) return false;
    Word handle = handles_[at];
    int flag = 0;
    next.Test(&handle, &flag, status);
    return true;
  }

 private:
  // Takes the message of a receive that became complete only in MPI's own call.
  static void finish(Pending& entry, const void* status) noexcept {
    if (entry.settled || entry.out != nullptr || entry.exchange) return;
    int cancelled = 0;
    if (entry.cancelling) real.test_cancelled(status, &cancelled);
    if (cancelled == 0) entry.taken = take(entry.to, status);
    entry.settled = true;
  }

  ProgramRequests given_;
  std::vector<Word> handles_;
  mutable Word failed_ = 0;
};

// Statuses holds those of the program or, where it ignores them, others in their place.
class Statuses {
 public:
  Statuses(void* given, std::size_t count) : first_(given) {
    if (!is_ignored(given)) return;
    own_.resize(count * abi().status_bytes / sizeof(Word) + 1);
    first_ = own_.data();
  }
  void* first() const noexcept { return first_; }
  void* at(std::size_t i) const noexcept { return status_at(first_, i); }

 private:
  std::vector<Word> own_;  // aligned as a status
  void* first_;
};

// Raises the error of a call that returns several statuses, each of which says what became of its
// request. The error handler is the program's, and so is called without the lock.
int failed_in_status(const Call& call, MessageLock* lock) {
  if (call.failed() == 0) return error_in_status();  // MPI has raised the error already
  if (lock != nullptr) lock->end();
  return raise_code(call.failed(), error_in_status());
}

// Tells of the errors of requests of ours, after MPI has completed the others with `code`.
int tell_errors(const Call& call, const Statuses& statuses, const std::vector<int>& codes, int code,
                MessageLock* lock = nullptr) {
  if (std::ranges::all_of(codes, [](int one) { return one == 0; })) return code;
  for (std::size_t i = 0; i < call.size(); ++i) {
    if (codes[i] != 0 || code == 0) set_error(statuses.at(i), codes[i]);
  }
  return code != 0 ? code : failed_in_status(call, lock);
}

// Finishes all requests after MPI has completed them with `code`.
int complete_all(const Call& call, const Statuses& statuses, int code,
                 MessageLock* lock = nullptr) {
  std::vector<int> codes(call.size());
  for (std::size_t i = 0; i < call.size(); ++i) codes[i] = call.complete(i, statuses.at(i));
  return tell_errors(call, statuses, codes, code, lock);
}

// The same of requests, of which ours are settled, where other threads call MPI meanwhile: MPI
// waits for the other requests once ours are gone, since it may give their handles to those
// threads. MPI_Testall is no way to wait: that of MPICH 5.0.2 fails for persistent collectives
// under way.
int complete_beside_threads(const Call& call, int count, void* requests, const Statuses& statuses) {
  const Statuses others(reinterpret_cast<void*>(abi().statuses_ignore), call.size());
  std::vector<int> codes(call.size());
  std::vector<bool> ours(call.size());
  {
    const MessageLock lock;
    for (std::size_t i = 0; i < call.size(); ++i) {
      ours[i] = call.complete_settled(i, statuses.at(i), codes[i]);
    }
  }
  const int code = next.Waitall(count, requests, others.first());
  for (std::size_t i = 0; i < call.size(); ++i) {
    if (!ours[i]) copy_status(others.at(i), statuses.at(i));
    if (code != 0) set_error(statuses.at(i), ours[i] ? codes[i] : error_of(others.at(i)));
  }
  return tell_errors(call, statuses, codes, code);
}

// Finishes the requests that a call has completed; MPI does not know the first `apart` of them. The
// errors in the statuses are the program's own unless the call says that they tell of failures.
int complete_some(const Call& call, int number, int apart, const int* indices,
                  const Statuses& statuses, int code, MessageLock& lock) {
  std::vector<int> codes(static_cast<std::size_t>(std::max(number, 0)));
  for (std::size_t i = 0; i < codes.size(); ++i) {
    codes[i] = call.complete(static_cast<std::size_t>(indices[i]), statuses.at(i));
  }
  const bool failed = std::ranges::any_of(codes, [](int one) { return one != 0; });
  if (!failed && code == 0) return 0;
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const bool told_by_mpi = code != 0 && i >= static_cast<std::size_t>(apart);
    if (codes[i] != 0 || !told_by_mpi) set_error(statuses.at(i), codes[i]);
  }
  return code != 0 ? code : failed_in_status(call, &lock);
}

// Says whether this is an active persistent collective. It stays one until this thread completes
// it, or MPI ends.
bool is_round(Word handle) {
  const MessageLock lock;
  return pending.collectives().find_active(handle) != nullptr;
}

bool are_rounds(const ProgramRequests& given, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    if (!is_round(given.get(i))) return false;
  }
  return true;
}

// Others may be about to do their tasks, which are left to them: a root would otherwise copy to all
// ranks of a broadcast.
void leave_tasks_to_others(Word handle) {
  const unsigned spins = wait_policy().spins;
  for (unsigned spin = 0; spin < spins; ++spin) {
    {
      MessageLock lock;
      lock.stay_if_ended();
      if (pending.collectives().find_active(handle)->collective->is_ready(false)) return;
    }
    os::relax();
    MessageLock::let_others();
  }
}

struct EndedRound {
  int code = 0;
  Word comm = 0;
};

// Ends the round of a collective whose status nobody wants, in which MPI has no part, and returns
// true, or false where it is not over.
bool end_round(Word handle, EndedRound& ended) noexcept {
  Pending& entry = *pending.collectives().find_active(handle);
  if (!pending.settle(handle, entry)) return false;
  ended = {entry.taken.code, entry.to.comm};
  pending.collectives().end_round(entry);
  return true;
}

// Waits for such a round.
EndedRound finish_round(Word handle) {
  EndedRound ended;
  leave_tasks_to_others(handle);
  wait_until([&] { return end_round(handle, ended); });
  return ended;
}

// Each of the requests is such a round.
int finish_rounds(const ProgramRequests& given, std::size_t count) {
  Word failed = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const EndedRound ended = finish_round(given.get(i));
    if (ended.code != 0) failed = ended.comm;
  }
  return failed == 0 ? 0 : raise_code(failed, error_in_status());
}

int complete_one(const Call& call, std::size_t at, void* status, int code,
                 MessageLock* lock = nullptr) {
  const int one = call.complete(at, status);
  if (one == 0 || code != 0) return code;
  if (lock != nullptr) lock->end();
  return call.failed() == 0 ? one : raise_code(call.failed(), one);
}

// Before MPI looks at requests none of which is ours: some may be generalised requests, which call
// the program.
void look_and_end(MessageLock& lock) noexcept {
  pending.look();
  lock.end();
}

// Waits for test(flag) to set its flag, or to return an error. It takes the lock where it must.
template <class Test>
int wait_by(Test test) {
  int flag = 0;
  int code = 0;
  wait_unlocked([&] {
    code = test(&flag);
    return flag != 0 || code != 0;
  });
  return code;
}

}  // namespace

int messages::get_status(Word request, int* flag, void* status) {
  Pending& entry = *pending.find(clean(request));
  *flag = 0;
  if (!pending.settle(clean(request), entry)) return pending.look(), 0;
  const int code = next.Request_get_status(request, flag, status);
  if (*flag != 0) mend_one(entry, status);
  return code;
}

namespace serve {

int Wait(void* request, void* status) {
  if (pending.empty()) return next.Wait(request, status);
  const Word handle = ProgramRequests(request).get(0);
  const bool round = pending.collectives().active() != 0 && is_round(handle);
  if (round && is_ignored(status)) {
    const EndedRound ended = finish_round(handle);
    return ended.code == 0 ? 0 : raise_code(ended.comm, ended.code);
  }
  if (!round && pending.only_collectives()) return next.Wait(request, status);
  if (ranks.threads) return wait_by([&](int* flag) { return Test(request, flag, status); });
  const Call call(1, request);
  const Statuses own(status, 1);
  if (call.entry(0) != nullptr) {
    wait_until([&] { return call.settle_all(); });
    return complete_one(call, 0, own.first(), next.Wait(request, own.first()));
  }
  return wait_by([&](int* flag) { return next.Test(request, flag, status); });
}

int Test(void* request, int* flag, void* status) {
  if (pending.empty()) return next.Test(request, flag, status);
  MessageLock lock = MessageLock::after_others();
  const Call call(1, request);
  if (call.entry(0) == nullptr) {
    look_and_end(lock);
    return next.Test(request, flag, status);
  }
  *flag = 0;
  if (!call.settle_all()) return pending.look(), 0;
  const Statuses own(status, 1);
  const int code = next.Test(request, flag, own.first());
  return *flag != 0 ? complete_one(call, 0, own.first(), code, &lock) : code;
}

int Waitall(int count, void* requests, void* statuses) {
  if (pending.empty() || count <= 0) return next.Waitall(count, requests, statuses);
  const auto number = static_cast<std::size_t>(count);
  if (pending.collectives().active() >= number && is_ignored(statuses) &&
      are_rounds(ProgramRequests(requests), number)) {
    return finish_rounds(ProgramRequests(requests), number);
  }
  const Call call(count, requests);
  const Statuses own(statuses, call.size());
  wait_until([&] { return call.settle_all(); });
  if (ranks.threads) return complete_beside_threads(call, count, requests, own);
  return complete_all(call, own, next.Waitall(count, requests, own.first()));
}

int Testall(int count, void* requests, int* flag, void* statuses) {
  if (pending.empty() || count <= 0) return next.Testall(count, requests, flag, statuses);
  MessageLock lock = MessageLock::after_others();
  const Call call(count, requests);
  if (!call.has_ours()) {
    look_and_end(lock);
    return next.Testall(count, requests, flag, statuses);
  }
  *flag = 0;
  if (!call.settle_all()) return pending.look(), 0;
  const Statuses own(statuses, call.size());
  const int code = next.Testall(count, requests, flag, own.first());
  return *flag != 0 ? complete_all(call, own, code, &lock) : code;
}

int Testany(int count, void* requests, int* index, int* flag, void* status) {
  if (pending.empty() || count <= 0) return next.Testany(count, requests, index, flag, status);
  MessageLock lock = MessageLock::after_others();
  const Call call(count, requests);
  if (!call.has_ours()) {
    look_and_end(lock);
    return next.Testany(count, requests, index, flag, status);
  }
  const Statuses own(status, 1);
  pending.look();
  call.settle_all();
  for (int i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (!call.complete_apart(at, own.first())) continue;
    *index = i;
    *flag = 1;
    return complete_one(call, at, own.first(), 0, &lock);
  }
  const int code = next.Testany(count, requests, index, flag, own.first());
  if (*flag != 0 && *index < 0 && call.has_apart()) *flag = 0;
  if (*flag == 0 || *index < 0) return code;
  return complete_one(call, static_cast<std::size_t>(*index), own.first(), code, &lock);
}

int Waitany(int count, void* requests, int* index, void* status) {
  if (pending.empty() || count <= 0) return next.Waitany(count, requests, index, status);
  return wait_by([&](int* flag) { return Testany(count, requests, index, flag, status); });
}

int Testsome(int count, void* requests, int* number, int* indices, void* statuses) {
  if (pending.empty() || count <= 0) {
    return next.Testsome(count, requests, number, indices, statuses);
  }
  MessageLock lock = MessageLock::after_others();
  const Call call(count, requests);
  if (!call.has_ours()) {
    look_and_end(lock);
    return next.Testsome(count, requests, number, indices, statuses);
  }
  const Statuses own(statuses, call.size());
  pending.look();
  call.settle_all();
  *number = 0;
  for (int i = 0; i < count; ++i) {
    const auto filled = static_cast<std::size_t>(*number);
    if (!call.complete_apart(static_cast<std::size_t>(i), own.at(filled))) continue;
    indices[(*number)++] = i;
  }
  // MPI skips those, and must tell of the others in the same call, or one that completes again and
  // again would keep others from ever being told of.
  const int apart = *number;
  int others = 0;
  const int code = next.Testsome(count, requests, &others, indices + apart,
                                 own.at(static_cast<std::size_t>(apart)));
  if (others > 0) *number += others;
  if (others < 0 && apart == 0 && !call.has_apart()) *number = others;
  return complete_some(call, *number, apart, indices, own, code, lock);
}

int Waitsome(int count, void* requests, int* number, int* indices, void* statuses) {
  if (pending.empty() || count <= 0) {
    return next.Waitsome(count, requests, number, indices, statuses);
  }
  return wait_by([&](int* flag) {
    const int code = Testsome(count, requests, number, indices, statuses);
    *flag = *number != 0 ? 1 : 0;
    return code;
  });
}

int Request_get_status(Word request, int* flag, void* status) {
  if (pending.empty()) return next.Request_get_status(request, flag, status);
  MessageLock lock = MessageLock::after_others();
  if (pending.find(clean(request)) != nullptr) return get_status(request, flag, status);
  look_and_end(lock);
  return next.Request_get_status(request, flag, status);
}

// The freed request goes on: its receive is taken, or the data of its send is read, though nobody
// asks for it any more.
int Request_free(void* request) {
  MessageLock lock;
  const ProgramRequests given(request);
  Pending* entry = pending.empty() ? nullptr : pending.find(given.get(0));
  if (entry == nullptr) {
    const auto gone = pending.collectives().collective_of(given.get(0));
    pending.erase_inactive(given.get(0));
    lock.end();
    return next.Request_free(request);
  }
  pending.free(*entry);
  given.set(0, abi().request_null);
  pending.look();
  return 0;
}

// A send that has begun is not cancelled, which the standard allows.
int Cancel(void* request) {
  MessageLock lock;
  Pending* entry = pending.empty() ? nullptr : pending.find(ProgramRequests(request).get(0));
  if (entry == nullptr) {
    lock.end();
    return next.Cancel(request);
  }
  if (entry->out != nullptr || entry->apart || entry->exchange) return 0;
  entry->cancelling = true;
  return next.Cancel(request);
}

}  // namespace serve
}  // namespace ropewalk::preload
