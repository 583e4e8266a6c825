// The handshake of exchanges without copies; put.hpp has its invariants.
#include "halo/put.hpp"

#include <string>
#include <utility>

#include "halo/streaming.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::halo {

namespace {

constexpr unsigned tests_per_look = 64;  // at MPI and the others' lives: 0.1 to 1 us a time

// Beside the number in `started`: this rank does not come to a later exchange.
constexpr std::uint64_t gave_up = std::uint64_t{1} << 63;

}  // namespace

PutCarrier::PutCarrier(std::shared_ptr<transport::LaneSet> lanes, node::Team* team, FlagBlock flags,
                       std::vector<Meeting> meetings, std::size_t send_bytes)
    : lanes_(std::move(lanes)),
      team_(team),
      flags_(std::move(flags)),
      meetings_(std::move(meetings)),
      send_bytes_(send_bytes) {}

PutCarrier::~PutCarrier() {
  if (!lanes_->is_here()) {
    flags_.abandon();  // in a child of fork neither the team nor the neighbours' memory is there
  } else if (team_ != nullptr && settled_) {
    end();
  }
}

// Whatever the reason, this rank writes to no neighbour any more. Neighbours read and write the
// memory of this rank until they have ended theirs, which one that has died never does.
void PutCarrier::end() noexcept {
  if (unwinding_) {
    give_up();
  } else {
    try {
      wait();
    } catch (...) {  // a neighbour has died or given up; wait() has given up in turn
    }
  }
  leave();
  flags_.retire(withdrawn);
}

template <class Body>
void PutCarrier::guarded(Body&& body) {
  try {
    body();
  } catch (...) {
    give_up();
    throw;
  }
}

void PutCarrier::start() {
  lanes_->require_usable();
  ++exchange_;
  met_ = 0;
  started_ = true;
  if (team_ == nullptr) return;
  // Pairs with the acquire in all_started() of the neighbours: they see what this rank has written
  // into their places, and what it has read of its own it has read.
  flags_.started().number.store(exchange_, std::memory_order_release);
  team_->waits().wake_sleepers();
}

bool PutCarrier::test() {
  if (failed_ || !lanes_->is_here()) lanes_->require_usable();
  if (!started_) return true;
  guarded([this] {
    if (all_started()) {
      started_ = false;
    } else if (++tests_ % tests_per_look == 0) {
      team_->waits().look_around();
    }
  });
  return !started_;
}

void PutCarrier::wait() {
  if (!started_) return;
  if (!lanes_->is_here()) lanes_->require_usable();
  guarded([this] {
    if (team_ != nullptr) team_->waits().until([this] { return all_started(); });
  });
  started_ = false;
}

bool PutCarrier::all_started() {
  for (; met_ < meetings_.size(); ++met_) {
    const Meeting& meeting = meetings_[met_];
    // Pairs with the release in start() of the neighbour.
    const std::uint64_t number = meeting.started->number.load(std::memory_order_acquire);
    if ((number & ~gave_up) >= exchange_) continue;
    if ((number & gave_up) == 0) return false;
    // The death of a rank makes others give up: it is the better answer, and may take a moment to
    // be known where it was on another node.
    team_->waits().look_around();
    lanes_->lost().explain();
    throw Error(ErrorCode::mpi, "halo: rank " + std::to_string(meeting.peer) +
                                    " gave up its exchanges, expected its faces; see its error, "
                                    "and make new endpoints and halos on all ranks");
  }
  return true;
}

// The releases pair with the acquire in FlagBlock::all_left of the neighbours: all that this rank
// writes to their memory is written.
void PutCarrier::leave() noexcept {
  complete_streaming_stores();
  for (const Meeting& meeting : meetings_) {
    meeting.left->number.store(withdrawn, std::memory_order_release);
  }
}

void PutCarrier::give_up() noexcept {
  if (std::exchange(failed_, true) || !lanes_->is_here()) return;
  if (started_) lanes_->mark_broken();
  started_ = false;
  if (team_ == nullptr) return;
  flags_.started().number.store(exchange_ | gave_up, std::memory_order_release);
  team_->waits().wake_sleepers();
}

}  // namespace ropewalk::halo
