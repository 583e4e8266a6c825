#include "os/network.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

namespace ropewalk::os {
namespace {

// Connections that wait for the thread that accepts them: as many as the kernel lets wait.
constexpr int backlog = SOMAXCONN;
constexpr int most_unheard = 127;  // the kernel's limit of TCP_KEEPCNT: giving up is ours to decide

constexpr std::array<std::uint8_t, 12> mapped_prefix{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

bool is_mapped(const Address& address) noexcept {
  return std::equal(mapped_prefix.begin(), mapped_prefix.end(), address.bytes.begin());
}

Address mapped(const in_addr& ip) noexcept {
  Address out;
  std::copy(mapped_prefix.begin(), mapped_prefix.end(), out.bytes.begin());
  std::memcpy(out.bytes.data() + mapped_prefix.size(), &ip, sizeof ip);
  return out;
}

std::optional<Address> address_of(const sockaddr* from) noexcept {
  if (from == nullptr) return std::nullopt;
  if (from->sa_family == AF_INET) {
    sockaddr_in ip{};
    std::memcpy(&ip, from, sizeof ip);
    return mapped(ip.sin_addr);
  }
  if (from->sa_family != AF_INET6) return std::nullopt;
  sockaddr_in6 ip{};
  std::memcpy(&ip, from, sizeof ip);
  Address out;
  std::memcpy(out.bytes.data(), &ip.sin6_addr, sizeof ip.sin6_addr);
  return out;
}

// IPv4 addresses stay IPv4: a kernel without IPv6 has no mapped addresses.
socklen_t fill(sockaddr_storage& to, const Address& address, std::uint16_t port) noexcept {
  to = {};
  if (is_mapped(address)) {
    sockaddr_in ip{};
    ip.sin_family = AF_INET;
    ip.sin_port = htons(port);
    std::memcpy(&ip.sin_addr, address.bytes.data() + mapped_prefix.size(), sizeof ip.sin_addr);
    std::memcpy(&to, &ip, sizeof ip);
    return sizeof ip;
  }
  sockaddr_in6 ip{};
  ip.sin6_family = AF_INET6;
  ip.sin6_port = htons(port);
  std::memcpy(&ip.sin6_addr, address.bytes.data(), sizeof ip.sin6_addr);
  std::memcpy(&to, &ip, sizeof ip);
  return sizeof ip;
}

Descriptor tcp_socket(int family) noexcept {
  return Descriptor(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

void set(const Descriptor& socket, int level, int option, int value) noexcept {
  setsockopt(socket.get(), level, option, &value, sizeof value);
}

Descriptor listening(int family, std::uint16_t& port) noexcept {
  Descriptor out = tcp_socket(family);
  if (!out) return out;
  sockaddr_storage name{};  // the unspecified address and port of either family are zeros
  name.ss_family = static_cast<sa_family_t>(family);
  if (family == AF_INET6) set(out, IPPROTO_IPV6, IPV6_V6ONLY, 0);
  socklen_t length = family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  if (bind(out.get(), reinterpret_cast<const sockaddr*>(&name), length) != 0 ||
      listen(out.get(), backlog) != 0 ||
      getsockname(out.get(), reinterpret_cast<sockaddr*>(&name), &length) != 0) {
    return Descriptor();
  }
  // The port lies at the same place in both families' names.
  static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));
  std::uint16_t found = 0;
  std::memcpy(&found, reinterpret_cast<const char*>(&name) + offsetof(sockaddr_in, sin_port),
              sizeof found);
  port = ntohs(found);
  return out;
}

// A virtual interface has no speed: its file says -1, or cannot be read.
std::int64_t megabits_per_s(const std::string& interface) {
  const std::string path = "/sys/class/net/" + interface + "/speed";
  const std::optional<std::uint64_t> speed = read_number(path);
  constexpr std::uint64_t most = 1'000'000'000;  // -1 as an unsigned number is above this
  return speed && *speed < most ? static_cast<std::int64_t>(*speed) : -1;
}

// What a call that moves bytes has returned.
Moved moved(ssize_t result, bool zero_is_end) noexcept {
  if (result > 0) return {static_cast<std::size_t>(result)};
  if (result == 0) return {.ended = zero_is_end};
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return {};
  return {.ended = true, .error = errno};
}

msghdr header_of(std::span<const iovec> pieces) noexcept {
  msghdr header{};
  header.msg_iov = const_cast<iovec*>(pieces.data());  // the kernel only reads it
  header.msg_iovlen = pieces.size();
  return header;
}

bool is_link_local(const Address& address) noexcept {
  const auto& b = address.bytes;
  if (is_mapped(address)) return b[12] == 169 && b[13] == 254;
  return b[0] == 0xfe && (b[1] & 0xc0) == 0x80;
}

}  // namespace

std::string text(const Address& address) {
  char out[INET6_ADDRSTRLEN] = "?";
  const bool ip4 = is_mapped(address);
  inet_ntop(ip4 ? AF_INET : AF_INET6, address.bytes.data() + (ip4 ? mapped_prefix.size() : 0), out,
            sizeof out);
  return out;
}

std::vector<Interface> interfaces() {
  std::vector<Interface> out;
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return out;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if ((one->ifa_flags & IFF_UP) == 0) continue;
    const std::optional<Address> address = address_of(one->ifa_addr);
    if (!address || is_link_local(*address)) continue;
    const bool loopback = (one->ifa_flags & IFF_LOOPBACK) != 0;
    out.push_back({one->ifa_name, *address, loopback, megabits_per_s(one->ifa_name)});
  }
  freeifaddrs(all);
  return out;
}

std::vector<Address> interface_addresses() {
  std::vector<Address> out;
  for (const Interface& one : interfaces()) {
    if (!one.loopback) out.push_back(one.address);
  }
  return out;
}

Descriptor listen_on_any_port(std::uint16_t& port) noexcept {
  Descriptor both = listening(AF_INET6, port);
  return both ? std::move(both) : listening(AF_INET, port);
}

Descriptor accept_next(const Descriptor& listener) noexcept {
  return Descriptor(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
}

Descriptor start_connection(const Address& address, std::uint16_t port) noexcept {
  sockaddr_storage to;
  const socklen_t length = fill(to, address, port);
  Descriptor out = tcp_socket(to.ss_family);
  if (!out) return out;
  send_without_delay(out);
  if (connect(out.get(), reinterpret_cast<const sockaddr*>(&to), length) != 0 &&
      errno != EINPROGRESS) {
    out.reset();
  }
  return out;
}

int connection_error(const Descriptor& socket) noexcept {
  int error = 0;
  socklen_t length = sizeof error;
  return getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &length) == 0 ? error : errno;
}

std::optional<Address> peer_address(const Descriptor& socket) noexcept {
  sockaddr_storage name{};
  socklen_t length = sizeof name;
  if (getpeername(socket.get(), reinterpret_cast<sockaddr*>(&name), &length) != 0) {
    return std::nullopt;
  }
  return address_of(reinterpret_cast<const sockaddr*>(&name));
}

void send_without_delay(const Descriptor& socket) noexcept {
  set(socket, IPPROTO_TCP, TCP_NODELAY, 1);
}

Moved send_some(const Descriptor& socket, std::span<const iovec> pieces) noexcept {
  const msghdr header = header_of(pieces);
  return moved(sendmsg(socket.get(), &header, MSG_NOSIGNAL | MSG_DONTWAIT), false);
}

Moved receive_some(const Descriptor& socket, std::span<const iovec> places) noexcept {
  msghdr header = header_of(places);
  return moved(recvmsg(socket.get(), &header, MSG_DONTWAIT), true);
}

void start_keepalive(const Descriptor& socket, int seconds) noexcept {
  set(socket, IPPROTO_TCP, TCP_KEEPIDLE, seconds);
  set(socket, IPPROTO_TCP, TCP_KEEPINTVL, seconds);
  set(socket, IPPROTO_TCP, TCP_KEEPCNT, most_unheard);
  set(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
}

void stop_keepalive(const Descriptor& socket) noexcept { set(socket, SOL_SOCKET, SO_KEEPALIVE, 0); }

std::optional<std::int64_t> ns_since_heard(const Descriptor& socket) noexcept {
  tcp_info info{};
  socklen_t length = sizeof info;
  if (getsockopt(socket.get(), IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return std::nullopt;
  const std::uint32_t ms = std::min(info.tcpi_last_ack_recv, info.tcpi_last_data_recv);
  return std::int64_t{ms} * 1'000'000;
}

}  // namespace ropewalk::os
