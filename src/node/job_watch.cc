// The thread, and what it does when a connection has something to say; job_watch_state.cc has what
// becomes of it.
#include "node/job_watch.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "os/clock.hpp"
#include "threads/thread.hpp"

namespace ropewalk::node {

namespace {

constexpr std::int64_t second_ns = 1'000'000'000;
// Between two rounds of attempts to reach a process whose connections have closed.
constexpr std::int64_t after_refusal_ns = second_ns / 10;
constexpr std::int64_t after_failure_ns = second_ns;
// The kernel asks again ever more seldom; a new attempt asks at once.
constexpr std::int64_t attempt_ns = 10 * second_ns;
// Connections of strangers are closed after that time, and beyond that number.
constexpr std::int64_t guest_ns = 10 * second_ns;
constexpr std::size_t most_guests = 256;
// The thread calls a dozen functions; what programs have in static TLS lies on its stack, too.
constexpr std::size_t stack_bytes = std::size_t{256} << 10;

}  // namespace

struct JobWatch::Ready {
  enum Kind { bell, listener, guest, attempt, proved } kind;
  int descriptor;
  short wanted;
  Link* link = nullptr;
  Connection* connection = nullptr;
};

// The thread lives as long as the process: nobody joins it.
bool JobWatch::start(std::string& reason) {
  try {
    threads::Thread({.name = "rw-watch",
                     .stack_bytes = stack_bytes,
                     .owner = "the thread that watches them",
                     .remedy = "set ROPEWALK_TIMEOUT=off"},
                    [this] { run(); })
        .detach();
    return true;
  } catch (const std::exception& error) {
    reason = error.what();
    return false;
  }
}

void JobWatch::run() noexcept {
  try {
    loop();
  } catch (...) {  // no memory: nobody is watched any more
  }
}

void JobWatch::wake() const noexcept {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(bell_.get(), &one, sizeof one);
}

// Only this thread adds or removes connections, so what gather() names is there after poll.
void JobWatch::loop() {
  std::vector<pollfd> entries;
  for (;;) {
    std::vector<Ready> all;
    int patience = 0;
    {
      const std::lock_guard lock(mutex_);
      const std::int64_t now = os::steady_ns();
      for (const auto& link : links_) revive(*link, now);
      drop_old_guests(now);
      if (now >= deaf_until_ns_) deaf_until_ns_ = 0;
      if (asking_.load(std::memory_order_relaxed)) tick(now);
      tell_all();
      all = gather();
      patience = patience_ms(now);
    }
    entries.clear();
    for (const Ready& one : all) entries.push_back({one.descriptor, one.wanted, 0});
    if (poll(entries.data(), entries.size(), patience) < 0 && errno != EINTR) return;
    const std::lock_guard lock(mutex_);
    const std::int64_t now = os::steady_ns();
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (entries[i].revents != 0) handle(all[i], entries[i].revents, now);
    }
    std::erase_if(guests_, [](const auto& guest) { return !*guest; });
  }
}

std::vector<JobWatch::Ready> JobWatch::gather() {
  std::vector<Ready> out{{Ready::bell, bell_.get(), POLLIN}};
  // Whoever cannot be taken in stays in the queue, and poll would return for him at once, for ever.
  const bool room = guests_.size() < most_guests && deaf_until_ns_ == 0;
  if (room) out.push_back({Ready::listener, listener_.get(), POLLIN});
  for (const auto& guest : guests_) {
    out.push_back({Ready::guest, guest->socket().get(), POLLIN, nullptr, guest.get()});
  }
  for (const auto& link : links_) {
    for (Connection& one : link->attempts) {
      const short wanted = one.greeted ? POLLIN : POLLOUT;
      out.push_back({Ready::attempt, one.socket().get(), wanted, link.get(), &one});
    }
    for (Connection* one : {&link->made, &link->taken}) {
      if (!*one) continue;
      out.push_back({Ready::proved, one->socket().get(), POLLIN, link.get(), one});
    }
  }
  return out;
}

int JobWatch::patience_ms(std::int64_t now) const {
  std::int64_t until = INT64_MAX;
  if (asking_.load(std::memory_order_relaxed)) until = last_tick_ns_ + second_ns * interval_s_;
  if (!guests_.empty()) until = std::min(until, now + guest_ns);
  if (deaf_until_ns_ != 0) until = std::min(until, deaf_until_ns_);
  for (const auto& link : links_) {
    if (!link->needs_attempts()) continue;
    if (link->in_round) until = std::min(until, now + attempt_ns);
    if (!link->in_round && link->may_attempt()) until = std::min(until, link->next_round_ns);
  }
  if (until == INT64_MAX) return -1;
  return static_cast<int>(std::max<std::int64_t>(0, until - now) / 1'000'000) + 1;
}

void JobWatch::handle(const Ready& ready, short events, std::int64_t now) {
  switch (ready.kind) {
    case Ready::bell: {
      std::uint64_t rings = 0;
      [[maybe_unused]] const ssize_t got = read(bell_.get(), &rings, sizeof rings);
      break;
    }
    case Ready::listener:
      take_guests(now);
      break;
    case Ready::guest:
      if (*ready.connection && !handle_guest(*ready.connection, now)) ready.connection->close();
      break;
    case Ready::attempt:
      if (*ready.connection) handle_attempt(*ready.link, *ready.connection, events);
      break;
    case Ready::proved:
      if (*ready.connection) handle_proved(*ready.link, *ready.connection, now);
      break;
  }
}

void JobWatch::take_guests(std::int64_t now) {
  while (guests_.size() < most_guests) {
    os::Descriptor socket = os::accept_next(listener_);
    if (!socket) {
      // No descriptors or memory are left: as a rule somebody gives some back.
      if (errno != EAGAIN && errno != ECONNABORTED) deaf_until_ns_ = now + after_failure_ns;
      return;
    }
    guests_.push_back(std::make_unique<Connection>(std::move(socket), now));
  }
}

void JobWatch::drop_old_guests(std::int64_t now) {
  std::erase_if(guests_, [now](const auto& guest) { return now - guest->since_ns() > guest_ns; });
}

// False when it is to be closed.
bool JobWatch::handle_guest(Connection& guest, std::int64_t now) {
  Frame frame;
  const Connection::Received received = guest.receive(frame);
  if (received == Connection::Received::nothing) return true;
  if (received == Connection::Received::closed || frame.kind != Frame::greeting ||
      frame.subject != own_.id || frame.sender == own_.id || is_ended(frame.sender)) {
    return false;
  }
  Frame answer;
  answer.kind = Frame::answer;
  answer.sender = own_.id;
  answer.subject = frame.sender;
  if (!guest.send(answer)) return false;
  Link& link = link_to(frame.sender);
  guest.address = os::peer_address(guest.socket()).value_or(os::loopback_address);
  Connection taken = std::exchange(guest, Connection(os::Descriptor(), now));
  prove(link, link.taken, std::move(taken));
  return true;
}

void JobWatch::handle_attempt(Link& link, Connection& attempt, short events) {
  if (!attempt.greeted) {
    const int error = os::connection_error(attempt.socket());
    if (error == 0 && (events & POLLOUT) != 0) {
      Frame greeting;
      greeting.kind = Frame::greeting;
      greeting.sender = own_.id;
      greeting.subject = link.contact.id;
      attempt.greeted = attempt.send(greeting);
      if (!attempt.greeted) return attempt.close();
      if (asking_.load(std::memory_order_relaxed)) {
        os::keep_asking(attempt.socket(), interval_s_);
      }
      return;
    }
    note_failure(link, attempt.address, error);
    return attempt.close();
  }
  Frame frame;
  const Connection::Received received = attempt.receive(frame);
  if (received == Connection::Received::nothing) return;
  if (received == Connection::Received::frame && frame.kind == Frame::answer &&
      frame.sender == link.contact.id && frame.subject == own_.id) {
    return prove(link, link.made, std::exchange(attempt, Connection()));
  }
  // Somebody else has the port now: who had it has ended.
  link.failure = os::text(attempt.address) + ": another process answers there";
  if (link.proved == attempt.address) link.refused = true;
  attempt.close();
}

void JobWatch::handle_proved(Link& link, Connection& connection, std::int64_t now) {
  for (;;) {
    Frame frame;
    const Connection::Received received = connection.receive(frame);
    if (received == Connection::Received::nothing) return;
    if (received == Connection::Received::frame) {
      learn(frame);
      if (!connection) return;  // the news was of this very process
      continue;
    }
    connection.close();
    link.next_round_ns = now;
    return;
  }
}

// Attempts to reach a process that is not heard of, at all addresses it may have, one round after
// the other.
void JobWatch::revive(Link& link, std::int64_t now) {
  const bool needed = link.needs_attempts();
  std::erase_if(link.attempts, [&](const Connection& attempt) {
    if (!attempt) return true;
    // The other side may be stopped, or count on this very connection already.
    if (attempt.greeted && link.proved == attempt.address) return false;
    return (!needed && !attempt.greeted) || now - attempt.since_ns() > attempt_ns;
  });
  if (!needed) {
    link.in_round = false;
    return;
  }
  if (!link.attempts.empty()) return;
  if (link.in_round) end_round(link, now);
  if (link.may_attempt() && now >= link.next_round_ns) begin_round(link, now);
}

void JobWatch::begin_round(Link& link, std::int64_t now) {
  link.in_round = true;
  link.refused = false;
  link.failure = "no address that this node has not, too";
  for (const os::Address& address : link.candidates(own_)) {
    Connection attempt(os::start_connection(address, link.contact.port), now);
    attempt.address = address;
    if (!attempt) note_failure(link, address, errno);
    if (attempt) link.attempts.push_back(std::move(attempt));
  }
  if (link.attempts.empty()) end_round(link, now);
}

// A refusal is believed when it has come three times: a process that ends closes its sockets one
// after the other.
void JobWatch::end_round(Link& link, std::int64_t now) {
  constexpr int enough_refusals = 3;
  link.in_round = false;
  link.next_round_ns = now + (link.refused ? after_refusal_ns : after_failure_ns);
  if (link.refused && ++link.refusals >= enough_refusals) learn_ended(link.contact.id);
  changed_.notify_all();
}

void JobWatch::note_failure(Link& link, const os::Address& address, int error) {
  link.failure = os::text(address) + ": " + os::error_text(error);
  if (error == ECONNREFUSED && link.proved == address) link.refused = true;
}

void JobWatch::prove(Link& link, Connection& place, Connection&& connection) {
  place = std::move(connection);
  link.proved = place.address;
  link.refusals = 0;
  link.silence_ns = 0;
  link.doubtful = false;
  if (asking_.load(std::memory_order_relaxed)) os::keep_asking(place.socket(), interval_s_);
  changed_.notify_all();
}

}  // namespace ropewalk::node
