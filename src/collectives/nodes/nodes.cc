#include "collectives/nodes/nodes.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <new>
#include <optional>
#include <utility>

#include "collectives/nodes/exchange.hpp"
#include "collectives/nodes/traffic.hpp"
#include "mpi/joint.hpp"
#include "node/peers.hpp"

namespace ropewalk::collectives::nodes {
namespace {

// Looks at messages before a waiting rank gives its core away: each is a call of MPI, some 100 ns
// on a fast fabric and a system call on TCP. About what a small message takes, and where ranks
// share cores hardly any.
constexpr int looks_alone = 200;
constexpr int looks_crowded = 2;

constexpr int yields_per_watch = 64;    // yields between two looks for notices
constexpr int yields_per_check = 1024;  // yields between two looks whether this node's ranks live

// MPIs have few communicators, MPICH 2048: no more of them than this are taken from the program.
constexpr int most_held = 128;
std::atomic<int> held{0};  // of all hierarchies of the process

constexpr const char* none_left =
    "communicators: MPI has none left for the messages between nodes; free some";

// A joint decision of all nodes: an exception of one becomes one of all.
bool all_have(mpi::Comm comm, const std::unique_ptr<Engine>& engine,
              const std::optional<Error>& error, std::size_t& longest, std::string& reason) {
  mpi::share_error(comm, error);
  const std::int64_t worst = engine == nullptr ? 1 : 0;
  const std::int64_t full = held.load(std::memory_order_relaxed) >= most_held ? 1 : 0;
  std::array<std::int64_t, 3> most{worst, static_cast<std::int64_t>(longest), full};
  mpi::all_reduce(most, mpi::Combine::max, comm);
  longest = static_cast<std::size_t>(most[1]);
  if (most[2] != 0 && reason.empty()) {
    reason = "communicators: those over nodes hold " + std::to_string(most_held) +
             " of MPI's already, which has few; free some";
  }
  return most[0] == 0 && most[2] == 0;
}

// Takes no memory: there may be none left.
struct Failure {
  Failure(ErrorCode its_code, const char* its_text) : code(its_code) {
    std::snprintf(text, sizeof text, "%s", its_text);
  }
  ErrorCode code;
  char text[488];
};

// Withdrawn where an exception comes before its message.
struct Receiving {
  mpi::Request request;
  ~Receiving() { mpi::withdraw(request); }
};

// Of the exception that is being handled.
Failure current_failure() {
  try {
    throw;
  } catch (const Error& error) {
    return {error.code(), error.what()};
  } catch (const std::exception& error) {
    return {ErrorCode::system, error.what()};
  } catch (...) {
    return {ErrorCode::system, "unknown exception"};
  }
}

}  // namespace

std::unique_ptr<Nodes> Nodes::create(mpi::Comm comm, Layout layout, int threads,
                                     std::string& reason, std::string& attach_reason) {
  std::unique_ptr<Nodes> nodes(new Nodes(std::move(layout)));
  mpi::Comm own_node;
  if (!mpi::try_split(comm, nodes->layout_.node, nodes->layout_.rank, own_node)) {
    reason = none_left;
    return nullptr;
  }
  std::optional<Error> error;
  nodes->longest_message_ = nodes::longest_message();
  try {
    mpi::jointly(own_node,
                 [&] { nodes->engine_ = Engine::create(own_node, reason, attach_reason); });
    nodes->wishes_ = {wished_algorithm(), wishes_all_sizes()};
    nodes->threads_ = checked_threads(threads);
    const int wished = wished_threads();
    if (threads == 0) nodes->threads_ = wished;
  } catch (...) {
    const Failure failure = current_failure();
    error.emplace(failure.code, failure.text);
  }
  mpi::free(own_node);
  if (!all_have(comm, nodes->engine_, error, nodes->longest_message_, reason)) {
    if (reason.empty()) reason = "the ranks of another node cannot share memory";
    return nullptr;
  }
  // Not a duplicate: that would call the attribute functions of the program.
  mpi::Comm messages;
  if (!mpi::try_split(comm, 0, nodes->layout_.rank, messages)) {
    reason = none_left;
    return nullptr;
  }
  nodes->adopt(messages);
  nodes->liveness_ = node::Liveness::create(comm, nodes->liveness_reason_);
  return nodes;
}

void Nodes::adopt(mpi::Comm messages) {
  shared_ = new Shared{messages, {}, {}, mpi::create_keyval(&Nodes::release), getpid()};
  mpi::set_attribute(mpi::comm_self(), shared_->keyval, shared_);
  held.fetch_add(1, std::memory_order_relaxed);
  node::Team& team = engine_->team();
  team.watch_with(this);
  spins_ = team.crowded() ? looks_crowded : looks_alone;
}

void Nodes::share_cores() {
  engine_->share_cores();
  spins_ = looks_crowded;
}

// At the start of MPI_Finalize, or when the hierarchy ends.
void Nodes::release(void* value) noexcept {
  auto& shared = *static_cast<Shared*>(value);
  shared.ended = true;
  held.fetch_sub(shared.held - (shared.keeps_messages ? 1 : 0), std::memory_order_relaxed);
  try {
    // Messages may be on their way for ever where a rank has failed: MPI keeps what it needs.
    if (!shared.keeps_messages) mpi::free(shared.messages);
    for (mpi::Comm& owners : shared.owners) {
      if (owners != mpi::comm_null()) mpi::free(owners);
    }
    for (mpi::Comm& lane : shared.lanes) mpi::free(lane);
  } catch (const std::exception&) {
    // Nothing is left to do with it.
  }
}

Nodes::~Nodes() {
  if (shared_ == nullptr || shared_->process != getpid()) return;
  try {
    if (!shared_->ended) mpi::delete_attribute(mpi::comm_self(), shared_->keyval);
    if (!mpi::finalized()) mpi::free_keyval(shared_->keyval);
  } catch (const std::exception&) {
    // The MPI is on its way out.
  }
  delete shared_;
}

// Dissemination, watched as every wait is. What follows may block in MPI, where nothing is noticed:
// every rank has come, so nobody waits there for one that has refused the call or died before it.
// Takes no memory: a rank that failed between two rounds would be missed by some ranks only.
void Nodes::meet_all(const Header& header) {
  const int ranks = layout_.size();
  for (int distance = 1; distance < ranks; distance *= 2) {
    const int from = (layout_.rank - distance + ranks) % ranks;
    Header theirs{};
    exchange(&header, sizeof header, (layout_.rank + distance) % ranks, &theirs, sizeof theirs,
             from, small_tag());
    check_header(header, theirs, from);
  }
}

// Collective. Whether this many more of MPI's communicators may be taken, on all ranks.
bool Nodes::may_hold(int more) const {
  std::int64_t may = held.load(std::memory_order_relaxed) + more <= most_held ? 1 : 0;
  mpi::all_reduce(std::span(&may, 1), mpi::Combine::min, shared_->messages);
  return may != 0;
}

bool Nodes::make_owners(const Header& header) {
  if (!asked_for_owners_) {
    meet_all(header);
    mpi::jointly(shared_->messages, [&] { split_owners(); });
    asked_for_owners_ = true;
  }
  return !shared_->owners.empty();
}

// In rounds: as many slices as the smallest node has ranks have owners that are all different.
void Nodes::split_owners() {
  const int slices = most_slices(layout_);
  const int each = layout_.least;
  const int ranks = engine_->size();
  const int rounds = (slices + each - 1) / each;
  std::vector<mpi::Comm> owners(static_cast<std::size_t>(slices), mpi::comm_null());
  bool done = may_hold(rounds);
  for (int first = 0; done && first < slices; first += each) {
    const int slice = first + (layout_.place() - first % ranks + ranks) % ranks;
    const bool owns = slice < std::min(first + each, slices);
    mpi::Comm made;
    done = mpi::try_split(shared_->messages, owns ? slice : mpi::undefined(), layout_.node, made);
    if (done && owns) owners[static_cast<std::size_t>(slice)] = made;
  }
  if (done) {
    shared_->owners = std::move(owners);
    shared_->held += rounds;
    held.fetch_add(rounds, std::memory_order_relaxed);
    return;
  }
  for (mpi::Comm& made : owners) {
    if (made != mpi::comm_null()) mpi::free(made);
  }
}

Lanes* Nodes::make_lanes(const Header& header) {
  if (asked_for_lanes_) return lanes_.get();
  meet_all(header);
  mpi::jointly(shared_->messages, [&] {
    const LaneShare share = share_lanes(shared_->messages, threads_, layout_.most == 1);
    split_lanes(share.communicating);
    if (share.threads > 1) lanes_ = std::make_unique<Lanes>(share.threads, share.crowded);
  });
  asked_for_lanes_ = true;
  return lanes_.get();
}

// Of all or of none: then the caller alone communicates.
void Nodes::split_lanes(int communicating) {
  const int more = communicating - 1;
  if (more == 0) return;
  std::vector<mpi::Comm> lanes;
  lanes.reserve(static_cast<std::size_t>(more));
  bool done = may_hold(more);
  for (int lane = 0; done && lane < more; ++lane) {
    mpi::Comm made;
    done = mpi::try_split(shared_->messages, 0, layout_.rank, made);
    if (done) lanes.push_back(made);
  }
  if (done) {
    shared_->lanes = std::move(lanes);
    shared_->held += more;
    held.fetch_add(more, std::memory_order_relaxed);
    return;
  }
  for (mpi::Comm& made : lanes) mpi::free(made);
}

// ---- calls and notices

void Nodes::throw_broken() const { throw Error(static_cast<ErrorCode>(why_.code), why_.text); }

void Nodes::begin() {
  if (broken_) throw_broken();
  if (shared_->ended) throw Error(ErrorCode::mpi, "collective: called after MPI_Finalize began");
  ++calls_;
  in_call_ = true;
  for (const auto& [notice, source] : std::exchange(refusals_, {})) heed(notice, source);
}

// What an MPI reports when a connection has broken is worth less than the name of who has died. So
// is a buffer that cannot be read: its rank may have been told of a death, and given the buffer up.
void Nodes::explain() {
  try {
    throw;
  } catch (const Error& error) {
    const bool may_follow_a_death =
        error.code() == ErrorCode::mpi || error.code() == ErrorCode::system;
    if (may_follow_a_death && liveness_ != nullptr) liveness_->explain();
    throw;
  }
}

void Nodes::fail() {
  in_call_ = false;
  if (broken_) throw;
  broken_ = true;
  try {
    explain();
  } catch (...) {
    const Failure failure = current_failure();
    why_.code = static_cast<std::int64_t>(failure.code);
    std::snprintf(why_.text, sizeof why_.text, "%s", failure.text);
    // Of the dead all learn beside MPI, which may hang or end the job when it is to send to them.
    const bool known = failure.code == ErrorCode::peer_dead && liveness_ != nullptr;
    if (!known) tell_all(0, failure.code, true, failure.text);
    throw;
  }
}

void Nodes::refuse(const char* message) noexcept {
  char text[sizeof Notice::text];
  std::snprintf(text, sizeof text, "collective: rank %d refused its arguments: %s", layout_.rank,
                message);
  refuse_next(ErrorCode::argument, false, text);
}

void Nodes::leave_for_good() noexcept {
  if (shared_->process != getpid()) return;
  // The dead must not be sent anything: MPI may hang in it.
  if (liveness_ != nullptr && liveness_->broken()) return;
  shared_->keeps_messages = true;
  char text[sizeof Notice::text];
  std::snprintf(
      text, sizeof text,
      "collective: an exception on rank %d has ended its communicator, expected its call; "
      "see its error",
      layout_.rank);
  refuse_next(ErrorCode::mpi, true, text);
}

void Nodes::refuse_next(ErrorCode code, bool last, const char* text) noexcept {
  if (broken_ || shared_->ended) return;
  refused_ = ++calls_;
  tell_all(calls_, code, last, text);
}

void Nodes::tell_all(std::uint64_t call, ErrorCode code, bool last, const char* text) noexcept {
  Notice notice{call, static_cast<std::int64_t>(code), last ? 1 : 0, {}};
  std::snprintf(notice.text, sizeof notice.text, "%s", text);
  for (int rank = 0; rank < layout_.size(); ++rank) {
    if (rank != layout_.rank) tell(notice, rank);
  }
}

// Small enough that MPI takes a copy. Where it does not, it reads from memory that stays.
void Nodes::tell(const Notice& notice, int rank) noexcept {
  constexpr int patience = 1000;
  try {
    std::unique_ptr<Notice> copy(new (std::nothrow) Notice(notice));
    if (copy == nullptr) copy = std::exchange(spare_notice_, nullptr);
    if (copy == nullptr) return;
    *copy = notice;
    mpi::Request request =
        mpi::isend(copy.get(), sizeof *copy, rank, tag::notice, shared_->messages);
    for (int tests = 0; tests < patience; ++tests) {
      if (mpi::test(request)) return;
    }
    (void)copy.release();
  } catch (const std::exception&) {
    // A rank that cannot be told will find out for itself.
  }
}

void Nodes::take_notices() {
  mpi::Status found;
  while (mpi::iprobe(mpi::any_source(), tag::notice, shared_->messages, found)) {
    Notice notice;
    mpi::receive(&notice, sizeof notice, found.source, tag::notice, shared_->messages);
    heed(notice, found.source);
  }
}

void Nodes::heed(const Notice& notice, int source) {
  const bool last = notice.call != 0 && notice.last != 0;
  if (notice.call > calls_ || (last && !in_call_)) {
    refusals_.push_back({notice, source});
    return;
  }
  // Of a call that this rank has refused, too, or has come through without that rank.
  const bool past = notice.call < calls_ || !in_call_ || refused_ == calls_;
  if (notice.call != 0 && !last && past) return;
  broken_ = true;
  shared_->keeps_messages |= last;
  why_ = notice;
  why_.call = 0;
  if (notice.call != 0 && !last) tell(why_, source);  // it goes on, but not with us
  throw_broken();
}

// ---- waiting

void Nodes::look() {
  const std::unique_lock lock(looking_, std::try_to_lock);
  if (!lock.owns_lock()) return;
  take_notices();
  if (liveness_ != nullptr) liveness_->look();
}

void Nodes::lost(int place) {
  const int rank = layout_.at(layout_.node, place);
  if (liveness_ != nullptr) liveness_->lost(rank);
  throw Error(ErrorCode::peer_dead,
              "rank " + std::to_string(rank) + " (process " +
                  std::to_string(engine_->team().process_id(place)) +
                  ") has died: this communicator cannot be used any more; end the job");
}

void Nodes::wait_slowly(bool (*ready)(void*), void* test) {
  for (int yields = 1; !ready(test); ++yields) {
    sched_yield();
    if (yields % yields_per_check == 0) {
      engine_->team().look_around();
    } else if (yields % yields_per_watch == 0) {
      look();
    }
  }
}

void Nodes::wait_or_leave(mpi::Request& request) {
  try {
    wait(request);
  } catch (...) {
    mpi::leave(request);
    throw;
  }
}

void Nodes::send(const void* data, std::size_t bytes, int destination, int with_tag) {
  mpi::Request request = mpi::isend(data, bytes, destination, with_tag, shared_->messages);
  wait(request);
}

void Nodes::receive(void* data, std::size_t bytes, int source, int with_tag) {
  Receiving receiving{mpi::ireceive(data, bytes, source, with_tag, shared_->messages)};
  wait(receiving.request);
}

void Nodes::exchange(const void* sent, std::size_t sent_bytes, int destination, void* received,
                     std::size_t received_bytes, int source, int with_tag) {
  Receiving receiving{mpi::ireceive(received, received_bytes, source, with_tag, shared_->messages)};
  mpi::Request sending = mpi::isend(sent, sent_bytes, destination, with_tag, shared_->messages);
  wait_until([&] { return mpi::test(receiving.request) && mpi::test(sending); });
}

}  // namespace ropewalk::collectives::nodes
