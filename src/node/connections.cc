#include "node/connections.hpp"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "os/clock.hpp"

namespace ropewalk::node {
namespace {

using os::second_ns;

// This long a process waits between two rounds of attempts to reach a process whose connections
// have closed.
constexpr std::int64_t after_refusal_ns = second_ns / 10;
constexpr std::int64_t after_failure_ns = second_ns;
// The kernel repeats its own attempts ever more rarely; a new attempt is sent at once.
constexpr std::int64_t attempt_ns = 10 * second_ns;
// Connections of strangers are closed after this time, and beyond this number.
constexpr std::int64_t pending_ns = 10 * second_ns;
constexpr std::size_t most_pending = 256;

Frame frame_of(Frame::Kind kind, const ProcessId& sender, const ProcessId& subject) {
  Frame frame;
  frame.kind = kind;
  frame.sender = sender;
  frame.subject = subject;
  return frame;
}

}  // namespace

bool Connections::listen() {
  std::uint16_t port = 0;
  listener_ = os::listen_on_any_port(port);
  if (!listener_) return false;
  own_ = own_contact(port);
  return true;
}

MonitoredProcess* Connections::find(const ProcessId& id) const {
  const auto found =
      std::ranges::find_if(processes_, [&](const auto& one) { return one->contact.id == id; });
  return found == processes_.end() ? nullptr : found->get();
}

MonitoredProcess& Connections::process(const ProcessId& id) {
  if (MonitoredProcess* known = find(id)) return *known;
  processes_.push_back(std::make_unique<MonitoredProcess>());
  processes_.back()->contact.id = id;
  return *processes_.back();
}

void Connections::end(const ProcessId& id) {
  if (id == own_.id) return;
  notices_.add_ended(id);
  if (MonitoredProcess* process = find(id)) process->end();
}

void Connections::attend(std::int64_t now) {
  for (const auto& process : processes_) retry(*process, now);
  std::erase_if(pending_, [now](const auto& one) { return now - one->since_ns() > pending_ns; });
  if (now >= accepts_from_ns_) accepts_from_ns_ = 0;
}

void Connections::send_notices() {
  for (const auto& process : processes_) {
    for (Connection* one : {&process->outgoing, &process->accepted}) {
      if (*one && !notices_.send(*one, own_.id)) one->close();
    }
  }
}

void Connections::add_entries(std::vector<PollEntry>& entries) const {
  // A connection that cannot be accepted stays in the kernel's queue, and poll would return for it
  // at once, for ever.
  const bool room = pending_.size() < most_pending && accepts_from_ns_ == 0;
  if (room) entries.push_back({PollEntry::listener, listener_.get(), POLLIN});
  for (const auto& one : pending_) {
    entries.push_back({PollEntry::pending, one->socket().get(), POLLIN, nullptr, one.get()});
  }
  for (const auto& process : processes_) {
    for (Connection& one : process->attempts) {
      const short wanted = one.greeted ? POLLIN : POLLOUT;
      entries.push_back({PollEntry::attempt, one.socket().get(), wanted, process.get(), &one});
    }
    for (Connection* one : {&process->outgoing, &process->accepted}) {
      if (!*one) continue;
      entries.push_back({PollEntry::established, one->socket().get(), POLLIN, process.get(), one});
    }
  }
}

std::int64_t Connections::next_ns(std::int64_t now) const noexcept {
  std::int64_t next = INT64_MAX;
  if (!pending_.empty()) next = now + pending_ns;
  if (accepts_from_ns_ != 0) next = std::min(next, accepts_from_ns_);
  for (const auto& process : processes_) {
    if (!process->needs_attempts()) continue;
    if (process->in_round) next = std::min(next, now + attempt_ns);
    if (!process->in_round && process->may_attempt()) {
      next = std::min(next, process->next_round_ns);
    }
  }
  return next;
}

// What an earlier entry has led to may have closed the connection of this one.
void Connections::handle(const PollEntry& entry, short events, std::int64_t now) {
  if (entry.kind == PollEntry::listener) return accept_pending(now);
  if (!*entry.connection) return;
  switch (entry.kind) {
    case PollEntry::pending:
      if (!keeps_pending(*entry.connection, now)) entry.connection->close();
      break;
    case PollEntry::attempt:
      handle_attempt(*entry.process, *entry.connection, events);
      break;
    default:
      handle_established(*entry.process, *entry.connection, now);
      break;
  }
}

void Connections::remove_closed() {
  std::erase_if(pending_, [](const auto& one) { return !*one; });
}

void Connections::close_all() noexcept {
  listener_.reset();
  for (const auto& one : pending_) one->close();
  for (const auto& process : processes_) process->close_all();
}

// ---- connections that others open

void Connections::accept_pending(std::int64_t now) {
  while (pending_.size() < most_pending) {
    os::Descriptor socket = os::accept_next(listener_);
    if (!socket) {
      // No descriptors or memory are left: as a rule somebody gives some back.
      if (errno != EAGAIN && errno != ECONNABORTED) accepts_from_ns_ = now + after_failure_ns;
      return;
    }
    pending_.push_back(std::make_unique<Connection>(std::move(socket), now));
  }
}

// Reads the greeting, and returns false when the connection is to be closed.
bool Connections::keeps_pending(Connection& pending, std::int64_t now) {
  Frame frame;
  const Connection::Received received = pending.receive(frame);
  if (received == Connection::Received::nothing) return true;
  if (received == Connection::Received::closed || frame.kind != Frame::greeting ||
      frame.subject != own_.id || frame.sender == own_.id || notices_.has_ended(frame.sender)) {
    return false;
  }
  if (!pending.send(frame_of(Frame::answer, own_.id, frame.sender))) return false;
  MonitoredProcess& sender = process(frame.sender);
  pending.address = os::peer_address(pending.socket()).value_or(os::loopback_address);
  Connection accepted = std::exchange(pending, Connection(os::Descriptor(), now));
  establish(sender, sender.accepted, std::move(accepted));
  return true;
}

// ---- connections that this process opens

void Connections::handle_attempt(MonitoredProcess& process, Connection& attempt, short events) {
  if (!attempt.greeted) {
    const int error = os::connection_error(attempt.socket());
    if (error == 0 && (events & POLLOUT) != 0) return greet(process, attempt);
    process.note_failure(attempt.address, error);
    return attempt.close();
  }
  Frame frame;
  const Connection::Received received = attempt.receive(frame);
  if (received == Connection::Received::nothing) return;
  if (received == Connection::Received::frame && frame.kind == Frame::answer &&
      frame.sender == process.contact.id && frame.subject == own_.id) {
    return establish(process, process.outgoing, std::exchange(attempt, Connection()));
  }
  // Another process has the port now: the one that had it has ended.
  process.failure = os::text(attempt.address) + ": another process answers there";
  if (process.reached_at == attempt.address) process.refused = true;
  attempt.close();
}

void Connections::greet(MonitoredProcess& process, Connection& attempt) {
  attempt.greeted = attempt.send(frame_of(Frame::greeting, own_.id, process.contact.id));
  if (!attempt.greeted) return attempt.close();
  keepalive_.use(attempt);
}

// Attempts to reach a process that is not heard of, at all addresses it may have, one round after
// the other.
void Connections::retry(MonitoredProcess& process, std::int64_t now) {
  const bool needed = process.needs_attempts();
  std::erase_if(process.attempts, [&](const Connection& attempt) {
    if (!attempt) return true;
    // The other side may be stopped, or may rely on this very connection already.
    if (attempt.greeted && process.reached_at == attempt.address) return false;
    return (!needed && !attempt.greeted) || now - attempt.since_ns() > attempt_ns;
  });
  if (!needed) {
    process.in_round = false;
    return;
  }
  if (!process.attempts.empty()) return;
  if (process.in_round) end_round(process, now);
  if (process.may_attempt() && now >= process.next_round_ns) begin_round(process, now);
}

void Connections::begin_round(MonitoredProcess& process, std::int64_t now) {
  process.in_round = true;
  process.refused = false;
  process.failure = "no address that this node has not, too";
  for (const os::Address& address : process.candidates(own_)) {
    Connection attempt(os::start_connection(address, process.contact.port), now);
    attempt.address = address;
    if (!attempt) process.note_failure(address, errno);
    if (attempt) process.attempts.push_back(std::move(attempt));
  }
  if (process.attempts.empty()) end_round(process, now);
}

// A refusal is believed when it has come three times: a process that ends closes its sockets one
// after the other.
void Connections::end_round(MonitoredProcess& process, std::int64_t now) {
  constexpr int enough_refusals = 3;
  process.in_round = false;
  process.next_round_ns = now + (process.refused ? after_refusal_ns : after_failure_ns);
  if (process.refused && ++process.refusals >= enough_refusals) end(process.contact.id);
}

// ---- both

void Connections::establish(MonitoredProcess& process, Connection& place, Connection&& connection) {
  place = std::move(connection);
  process.reached_at = place.address;
  process.refusals = 0;
  process.silence_ns = 0;
  process.doubtful = false;
  keepalive_.use(place);
}

void Connections::handle_established(MonitoredProcess& process, Connection& connection,
                                     std::int64_t now) {
  while (connection) {  // until a notice says that this very process has ended
    Frame frame;
    const Connection::Received received = connection.receive(frame);
    if (received == Connection::Received::nothing) return;
    if (received == Connection::Received::frame) {
      take_in(frame);
    } else {
      connection.close();
      process.next_round_ns = now;
    }
  }
}

void Connections::take_in(const Frame& frame) {
  if (frame.kind == Frame::ended) end(frame.subject);
  if (frame.kind == Frame::broken) {
    notices_.add_broken({frame.communicator, frame.subject, frame.seconds});
  }
}

}  // namespace ropewalk::node
