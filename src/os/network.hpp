// TCP between processes of different nodes, as the liveness of ranks and the messages of ranks
// without an MPI need it: nothing blocks here.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "os/file.hpp"

namespace ropewalk::os {

// An IPv6 address, or an IPv4 one mapped into IPv6 (::ffff:a.b.c.d); sent to other ranks as bytes.
struct Address {
  std::array<std::uint8_t, 16> bytes{};
  friend bool operator==(const Address&, const Address&) = default;
};
std::string text(const Address&);  // "10.0.0.1", "fd00::2"

inline constexpr Address loopback_address{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1}};

// Returns the addresses of interfaces that are up, without loopback and link-local ones, in the
// kernel's order.
std::vector<Address> interface_addresses();

// An address of an interface that is up, loopback included, link-local addresses excluded.
struct Interface {
  std::string name;
  Address address;
  bool loopback = false;
  std::int64_t megabits_per_s = -1;  // as the driver says; -1: it does not
};
std::vector<Interface> interfaces();

// Opens a listening socket on a port of the kernel's choice, on all interfaces. It is invalid with
// errno set where there is no network at all.
Descriptor listen_on_any_port(std::uint16_t& port) noexcept;

// Returns the next connection that has been made to a listening socket; invalid when there is none.
// errno says why, and is EAGAIN where none has come.
Descriptor accept_next(const Descriptor& listener) noexcept;

// A connection under way: it becomes writable when connected or failed. The result is invalid with
// errno set where it fails at once.
Descriptor start_connection(const Address&, std::uint16_t port) noexcept;
// Returns 0 when connected, else the errno it has failed with.
int connection_error(const Descriptor& socket) noexcept;
std::optional<Address> peer_address(const Descriptor& socket) noexcept;
// Small messages are sent at once and do not wait for company.
void send_without_delay(const Descriptor& socket) noexcept;

// Bytes that went out or came in. Zero: nothing can be moved now.
struct Moved {
  std::size_t bytes = 0;
  bool ended = false;  // the other side has closed its end, or the connection has failed
  int error = 0;       // errno, where it has failed
};
Moved send_some(const Descriptor& socket, std::span<const iovec> pieces) noexcept;
Moved receive_some(const Descriptor& socket, std::span<const iovec> places) noexcept;

// From now on the kernel asks the other side every so many seconds whether it is there. The other
// side's kernel answers, whatever its process does, also while that is stopped.
void start_keepalive(const Descriptor& socket, int seconds) noexcept;
void stop_keepalive(const Descriptor& socket) noexcept;
// Since anything was last heard from the other side's kernel; nothing where it cannot be told.
std::optional<std::int64_t> ns_since_heard(const Descriptor& socket) noexcept;

}  // namespace ropewalk::os
