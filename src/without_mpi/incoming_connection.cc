#include "without_mpi/incoming_connection.hpp"

#include <sys/uio.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "os/network.hpp"

namespace ropewalk::without_mpi {

void IncomingConnection::into(std::byte* data, std::size_t room) noexcept {
  data_ = data;
  room_ = room;
  state_ = State::inside;
}

IncomingConnection::Event IncomingConnection::read(std::size_t& budget) {
  drained_ = false;
  for (;;) {
    switch (state_) {
      case State::between:
        if (staged() >= sizeof envelope_) {
          std::memcpy(&envelope_, stage_.data() + begin_, sizeof envelope_);
          begin_ += sizeof envelope_;
          received_ = 0;
          state_ = State::undecided;
          return Event::envelope;
        }
        if (!fill(budget)) return nothing_or_end();
        break;
      case State::inside:
        if (received_ == envelope_.bytes) {
          state_ = State::between;
          return Event::message;
        }
        if (staged() > 0) {
          take_staged();
        } else if (!receive_rest(budget)) {
          return nothing_or_end();
        }
        break;
      case State::undecided:
        return Event::nothing;
      case State::ended:
        return Event::end;
    }
  }
}

IncomingConnection::Event IncomingConnection::nothing_or_end() const noexcept {
  return state_ == State::ended ? Event::end : Event::nothing;
}

bool IncomingConnection::note(const os::Moved& moved, std::size_t asked, std::size_t& budget) {
  budget -= std::min(budget, moved.bytes);
  drained_ = moved.bytes < asked;
  if (moved.ended) {
    failure_ = moved.error == 0 ? "it has left this communicator, or has ended"
                                : os::error_text(moved.error);
    state_ = State::ended;
  }
  return moved.bytes > 0;
}

// Reads ahead: the next envelope, and what follows it.
bool IncomingConnection::fill(std::size_t& budget) {
  if (budget == 0 || drained_) return false;
  if (begin_ > 0) std::memmove(stage_.data(), stage_.data() + begin_, staged());
  end_ -= begin_;
  begin_ = 0;
  const iovec place{stage_.data() + end_, stage_.size() - end_};
  const os::Moved moved = os::receive_some(socket(), std::span(&place, 1));
  end_ += moved.bytes;
  return note(moved, place.iov_len, budget);
}

// Reads the rest of the message to its place, and ahead.
bool IncomingConnection::receive_rest(std::size_t& budget) {
  if (budget == 0 || drained_) return false;
  const std::size_t kept = std::min<std::size_t>(envelope_.bytes, room_);
  const std::size_t left = kept - std::min(kept, received_);
  const bool has_all = left == envelope_.bytes - received_;  // nothing of it is dropped
  std::byte* const next = left == 0 ? nullptr : data_ + received_;
  std::array<iovec, 2> places{iovec{next, left}, iovec{stage_.data(), stage_.size()}};
  const std::size_t first = left == 0 ? 1 : 0;
  const std::size_t last = left == 0 || has_all ? 2 : 1;
  const os::Moved moved =
      os::receive_some(socket(), std::span(places.data() + first, last - first));
  const std::size_t placed = std::min(moved.bytes, left);
  received_ += placed;
  begin_ = 0;
  end_ = moved.bytes - placed;
  const std::size_t asked = left + (last == 2 ? stage_.size() : 0);
  return note(moved, asked, budget);
}

void IncomingConnection::take_staged() noexcept {
  const std::size_t bytes = std::min<std::size_t>(staged(), envelope_.bytes - received_);
  const std::size_t kept = received_ < room_ ? std::min(bytes, room_ - received_) : 0;
  if (kept > 0) std::memcpy(data_ + received_, stage_.data() + begin_, kept);
  received_ += bytes;
  begin_ += bytes;
}

}  // namespace ropewalk::without_mpi
