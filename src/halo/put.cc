// The handshake of exchanges without copies; put.hpp has its invariants.
#include "halo/put.hpp"

#include <string>
#include <utility>

#include "halo/streaming.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::halo {

namespace {

// Beside the number in `started`: this rank does not come to a later exchange.
constexpr std::uint64_t gave_up = std::uint64_t{1} << 63;

}  // namespace

PutCarrier::PutCarrier(std::shared_ptr<transport::LaneSet> lanes, node::Team* team, FlagBlock flags,
                       std::vector<Meeting> meetings, PartLines lines, std::size_t send_bytes)
    : lanes_(std::move(lanes)),
      team_(team),
      flags_(std::move(flags)),
      meetings_(std::move(meetings)),
      lines_(std::move(lines)),
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
  if (unwinding_ || missing()) {  // nobody hands over the rest
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
    if (all_started() && !missing()) {
      started_ = false;
    } else if (team_ != nullptr && ++tests_ % tests_per_look == 0) {
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
    const bool came = (number & ~gave_up) >= exchange_;
    if (came && all_ready(meeting)) continue;
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

bool PutCarrier::all_ready(const Meeting& meeting) const noexcept {
  for (int part = 0; part < (meeting.ready == nullptr ? 0 : lines_.parts); ++part) {
    // Pairs with the release in ready() of the neighbour.
    if (meeting.ready[part].number.load(std::memory_order_acquire) < exchange_) return false;
  }
  return true;
}

bool PutCarrier::ready(int direction, int part) {
  if (!lanes_->is_here()) lanes_->require_usable();
  std::atomic<std::uint64_t>& number =
      lines_.faces[static_cast<std::size_t>(direction)].ready[part].number;
  // Only this thread writes it, unless the caller is wrong; an exact answer to that would cost a
  // locked instruction.
  if (number.load(std::memory_order_relaxed) == exchange_) return false;
  complete_streaming_stores();
  // Pairs with the acquire in all_ready() and arrived() of whom the face is for: they see what this
  // thread has written into the part.
  number.store(exchange_, std::memory_order_release);
  if (team_ != nullptr) team_->waits().wake_sleepers();
  return true;
}

bool PutCarrier::arrived(int direction, int part) const {
  const FlagLine* lines = lines_.faces[static_cast<std::size_t>(direction)].arriving;
  // Pairs with the release in ready() of the neighbour, or of this rank where it is its own.
  return lines[part].number.load(std::memory_order_acquire) >= exchange_;
}

// Relaxed: what other threads of this rank have written, they have released to the neighbours.
std::optional<PartOfFace> PutCarrier::missing() const {
  if (!started_) return {};
  for (std::size_t i = 0; i < lines_.faces.size(); ++i) {
    const FlagLine* lines = lines_.faces[i].ready;
    for (int part = 0; part < (lines == nullptr ? 0 : lines_.parts); ++part) {
      if (lines[part].number.load(std::memory_order_relaxed) == exchange_) continue;
      return PartOfFace{static_cast<int>(i), part};
    }
  }
  return {};
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
