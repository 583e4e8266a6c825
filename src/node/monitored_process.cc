#include "node/monitored_process.hpp"

#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>

#include "os/file.hpp"
#include "os/hash.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::node {
namespace {

// Addresses mean the same in one network namespace of one booted kernel.
std::uint64_t host_hash() {
  char link[64];
  const ssize_t length = readlink("/proc/self/ns/net", link, sizeof link);
  std::string text = os::read_text("/proc/sys/kernel/random/boot_id").value_or("");
  if (length > 0) text.append(link, static_cast<std::size_t>(length));
  return os::hash(text);
}

}  // namespace

ProcessId random_id() {
  ProcessId id;
  if (getrandom(id.words.data(), sizeof id.words, 0) != sizeof id.words) {
    throw Error(ErrorCode::system, "getrandom: " + os::error_text(errno));
  }
  return id;
}

Contact own_contact(std::uint16_t port) {
  Contact own;
  own.id = random_id();
  own.host = host_hash();
  own.process = getpid();
  own.port = port;
  for (const os::Address& address : os::interface_addresses()) {
    if (own.addresses < Contact::most_addresses) own.address[own.addresses++] = address;
  }
  if (gethostname(own.host_name, sizeof own.host_name - 1) != 0) own.host_name[0] = '?';
  return own;
}

bool Connection::send(const Frame& frame) noexcept {
  return ::send(socket_.get(), &frame, sizeof frame, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof frame;
}

Connection::Received Connection::receive(Frame& frame) noexcept {
  const ssize_t got = recv(socket_.get(), partial_.data() + partial_bytes_,
                           partial_.size() - partial_bytes_, MSG_DONTWAIT);
  if (got < 0) {
    const bool later = errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
    return later ? Received::nothing : Received::closed;
  }
  if (got == 0) return Received::closed;
  partial_bytes_ += static_cast<std::size_t>(got);
  if (partial_bytes_ < partial_.size()) return Received::nothing;
  partial_bytes_ = 0;
  std::memcpy(&frame, partial_.data(), sizeof frame);
  return frame.magic == Frame{}.magic ? Received::frame : Received::closed;
}

// An address that this host has as well would lead to this host itself, so it is left out.
std::vector<os::Address> MonitoredProcess::candidates(const Contact& own) const {
  std::vector<os::Address> out;
  if (reached_at) out.push_back(*reached_at);
  const bool same_host = contact.host == own.host;
  if (same_host && reached_at != os::loopback_address) out.push_back(os::loopback_address);
  const std::span<const os::Address> ours(own.address, own.addresses);
  for (const os::Address& address : std::span(contact.address, contact.addresses)) {
    if (reached_at == address) continue;
    if (same_host || std::ranges::find(ours, address) == ours.end()) out.push_back(address);
  }
  return out;
}

void MonitoredProcess::note_failure(const os::Address& address, int error) {
  failure = os::text(address) + ": " + os::error_text(error);
  if (error == ECONNREFUSED && reached_at == address) refused = true;
}

void MonitoredProcess::end() noexcept {
  ended = true;
  silent = false;
  outgoing.close();
  accepted.close();
}

void MonitoredProcess::close_all() noexcept {
  outgoing.close();
  accepted.close();
  for (Connection& attempt : attempts) attempt.close();
}

std::optional<std::int64_t> MonitoredProcess::ns_since_heard() const noexcept {
  std::optional<std::int64_t> least;
  for_each_connection(*this, [&](const Connection& connection) {
    const std::optional<std::int64_t> ns = os::ns_since_heard(connection.socket());
    if (ns) least = least ? std::min(*least, *ns) : *ns;
  });
  return least;
}

}  // namespace ropewalk::node
