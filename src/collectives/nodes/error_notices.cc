#include "collectives/nodes/error_notices.hpp"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>

#include "collectives/nodes/messages.hpp"

namespace ropewalk::collectives::nodes {
namespace {

ErrorNotice notice_of(std::uint64_t call, ErrorCode code, bool last, const char* text) noexcept {
  ErrorNotice notice{call, static_cast<std::int64_t>(code), last ? 1 : 0, {}};
  std::snprintf(notice.text, sizeof notice.text, "%s", text);
  return notice;
}

// Describes the exception that is being handled. It allocates no memory, as none may be left.
ErrorNotice notice_of_current_exception() noexcept {
  try {
    throw;
  } catch (const Error& error) {
    return notice_of(0, error.code(), true, error.what());
  } catch (const std::exception& error) {
    return notice_of(0, ErrorCode::system, true, error.what());
  } catch (...) {
    return notice_of(0, ErrorCode::system, true, "unknown exception");
  }
}

}  // namespace

ErrorNotices::ErrorNotices(MessageComms& comms, const NodeLayout& layout, node::Liveness* liveness)
    : comms_(comms), layout_(layout), liveness_(liveness) {
  comms_.settle_with([](void* notices) noexcept { static_cast<ErrorNotices*>(notices)->settle(); },
                     this);
}

ErrorNotices::~ErrorNotices() {
  if (!comms_.is_here() || comms_.ended()) return;
  settle();
  comms_.settle_with(nullptr, nullptr);
}

// MPICH ends a program that frees a communicator with messages that nobody has received. So all
// that have come are received first. Where this rank has refused a call that another has not, or
// not yet, messages of that one may still come. Nobody can wait for them, since the others may have
// ended, so MPI keeps the communicators.
void ErrorNotices::settle() noexcept {
  // So many looks take about 1 ms. MPI may need several to find what has come.
  constexpr int patience = 1000;
  for (int looks = 0; looks < patience && !comms_.abandoned(); ++looks) {
    receive_outside_calls();
    if (refusals_.empty()) return;
  }
  comms_.abandon();
}

void ErrorNotices::throw_reason() const {
  throw Error(static_cast<ErrorCode>(reason_.code), reason_.text);
}

void ErrorNotices::begin_call() {
  if (broken_) throw_reason();
  if (comms_.ended()) throw Error(ErrorCode::mpi, "collective: called after MPI_Finalize began");
  ++calls_;
  in_call_ = true;
  heed_early();
}

void ErrorNotices::heed_early() {
  for (const auto& [notice, source] : std::exchange(early_, {})) heed(notice, source);
}

// What an MPI reports when a connection has broken is worth less than the name of the rank that has
// died. So is a buffer that cannot be read: its owner may have learned of a death, and given the
// buffer up.
void ErrorNotices::explain() {
  try {
    throw;
  } catch (const Error& error) {
    const bool may_follow_a_death =
        error.code() == ErrorCode::mpi || error.code() == ErrorCode::system;
    if (may_follow_a_death && liveness_ != nullptr) liveness_->explain();
    throw;
  }
}

void ErrorNotices::give_up() noexcept {
  broken_ = true;
  comms_.abandon();
}

// A rank that has left may have said why. Throws what it has said, else the exception that is being
// handled.
void ErrorNotices::prefer_notice() {
  try {
    throw;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::mpi && !broken_) look();
    throw;
  }
}

void ErrorNotices::fail_call() {
  try {
    prefer_notice();
  } catch (...) {
    end_call();
    if (broken_) throw;
    give_up();
    tell_of_failure();
  }
}

// Tells all ranks of the exception that is being handled, and throws it.
void ErrorNotices::tell_of_failure() {
  try {
    explain();
  } catch (...) {
    reason_ = notice_of_current_exception();
    // All learn of a dead rank beside MPI, which may hang or end the job when it sends to one.
    const bool known = liveness_ != nullptr && liveness_->broken();
    if (!known) send_all(reason_);
    throw;
  }
}

void ErrorNotices::refuse_call(const char* reason) noexcept {
  char text[sizeof ErrorNotice::text];
  std::snprintf(text, sizeof text, "collective: rank %d refused its arguments: %s", layout_.rank,
                reason);
  refuse(ErrorCode::argument, false, text);
}

void ErrorNotices::refuse_all_calls() noexcept {
  // MPI may hang where it sends to the dead.
  if (liveness_ != nullptr && liveness_->broken()) return;
  comms_.abandon();
  char text[sizeof ErrorNotice::text];
  std::snprintf(text, sizeof text,
                "collective: an exception on rank %d has ended its communicator, expected its "
                "call; see its error",
                layout_.rank);
  refuse(ErrorCode::mpi, true, text);
}

void ErrorNotices::refuse(ErrorCode code, bool last, const char* text) noexcept {
  if (broken_ || comms_.ended()) return;
  refused_ = ++calls_;
  expect_notices();
  send_all(notice_of(calls_, code, last, text));
  // A rank that only refuses never waits, so it looks here: the notices of others do not pile up.
  receive_outside_calls();
}

void ErrorNotices::expect_notices() noexcept {
  try {
    refusals_.push_back({calls_, layout_.size() - 1});
  } catch (const std::bad_alloc&) {
    comms_.abandon();
  }
}

// Outside calls nothing is thrown; the next call says why it cannot be made.
void ErrorNotices::receive_outside_calls() noexcept {
  try {
    try {
      heed_early();
      look();
    } catch (...) {
      fail_call();
    }
  } catch (...) {  // fail_call() has kept it
  }
}

void ErrorNotices::send_all(const ErrorNotice& notice) noexcept {
  for (int rank = 0; rank < layout_.size(); ++rank) {
    if (rank != layout_.rank) send(notice, rank);
  }
}

// The message is small enough that MPI takes a copy. Where MPI does not, it reads from memory that
// stays.
void ErrorNotices::send(const ErrorNotice& notice, int rank) noexcept {
  constexpr int patience = 1000;
  try {
    std::unique_ptr<ErrorNotice> copy(new (std::nothrow) ErrorNotice(notice));
    if (copy == nullptr) copy = std::exchange(spare_, nullptr);
    if (copy == nullptr) return;
    *copy = notice;
    mpi::Request request = mpi::isend(copy.get(), sizeof *copy, rank, tag::notice, comms_.all());
    for (int tests = 0; tests < patience; ++tests) {
      if (mpi::test(request)) return;
    }
    (void)copy.release();
  } catch (const std::exception&) {
    // A rank that cannot be told will find out for itself.
  }
}

void ErrorNotices::look() {
  mpi::Status found;
  while (mpi::iprobe(mpi::any_source(), tag::notice, comms_.all(), found)) {
    ErrorNotice notice;
    mpi::receive(&notice, sizeof notice, found.source, tag::notice, comms_.all());
    heed(notice, found.source);
  }
}

// Counts a notice of a call that this rank has refused. Where this rank has made the call instead,
// there is nothing to count: no message of it is left when the notice has been received.
void ErrorNotices::count(const ErrorNotice& notice) noexcept {
  const auto found = std::ranges::find(refusals_, notice.call, &Refusal::call);
  if (found != refusals_.end() && --found->missing == 0) refusals_.erase(found);
}

void ErrorNotices::heed(const ErrorNotice& notice, int source) {
  const bool refusal = notice.call != 0;
  const bool last = refusal && notice.last != 0;
  if (notice.call > calls_ || (last && !in_call_)) {
    early_.emplace_back(notice, source);
    return;
  }
  // This rank has refused that call, too, or has come through it without the other.
  const bool past = notice.call < calls_ || !in_call_ || refused_ == calls_;
  if (refusal && !last && past) return count(notice);
  give_up();
  reason_ = notice;
  reason_.call = 0;
  // The rank that has refused goes on, and so does one that needed nothing of it in that call: all
  // must learn that this rank makes no more calls, or they wait for it. The number of the call lets
  // those that are still in an earlier one complete it.
  if (refusal && !last) {
    ErrorNotice told = notice;
    told.last = 1;
    send_all(told);
  }
  throw_reason();
}

}  // namespace ropewalk::collectives::nodes
