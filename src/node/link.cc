#include "node/link.hpp"

#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>

#include "ropewalk/error.hpp"

namespace ropewalk::node {

ProcessId random_id() {
  ProcessId id;
  if (getrandom(id.words.data(), sizeof id.words, 0) != sizeof id.words) {
    throw Error(ErrorCode::system, "getrandom: " + os::error_text(errno));
  }
  return id;
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

// An address that this host has, too, would lead to this host.
std::vector<os::Address> Link::candidates(const Contact& own) const {
  std::vector<os::Address> out;
  if (proved) out.push_back(*proved);
  const bool same_host = contact.host == own.host;
  if (same_host && proved != os::loopback_address) out.push_back(os::loopback_address);
  const std::span<const os::Address> ours(own.address, own.addresses);
  for (const os::Address& address : std::span(contact.address, contact.addresses)) {
    if (proved == address) continue;
    if (same_host || std::ranges::find(ours, address) == ours.end()) out.push_back(address);
  }
  return out;
}

std::optional<std::int64_t> Link::ns_since_heard() const noexcept {
  std::optional<std::int64_t> least;
  for_each_of(*this, [&](const Connection& connection) {
    const std::optional<std::int64_t> ns = os::ns_since_heard(connection.socket());
    if (ns) least = least ? std::min(*least, *ns) : *ns;
  });
  return least;
}

}  // namespace ropewalk::node
