// TCP between processes of different nodes, as the liveness of ranks needs it: nothing blocks here.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
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

// Opens a listening socket on a port of the kernel's choice, on all interfaces. It is invalid with
// errno set where there is no network at all.
Descriptor listen_on_any_port(std::uint16_t& port) noexcept;

// Returns the next connection that has been made to a listening socket; invalid when there is none.
Descriptor accept_next(const Descriptor& listener) noexcept;

// A connection under way: it becomes writable when connected or failed. The result is invalid with
// errno set where it fails at once.
Descriptor start_connection(const Address&, std::uint16_t port) noexcept;
// Returns 0 when connected, else the errno it has failed with.
int connection_error(const Descriptor& socket) noexcept;
std::optional<Address> peer_address(const Descriptor& socket) noexcept;

// From now on the kernel asks the other side every so many seconds whether it is there. The other
// side's kernel answers, whatever its process does, also while that is stopped.
void start_keepalive(const Descriptor& socket, int seconds) noexcept;
void stop_keepalive(const Descriptor& socket) noexcept;
// Since anything was last heard from the other side's kernel; nothing where it cannot be told.
std::optional<std::int64_t> ns_since_heard(const Descriptor& socket) noexcept;

}  // namespace ropewalk::os
