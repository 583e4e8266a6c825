#include "node/handover.hpp"

#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "mpi/collectively.hpp"
#include "os/clock.hpp"

namespace ropewalk::node {
namespace {

constexpr int waiting_room = 1024;  // connections that the kernel keeps for a slow rank
constexpr int step_ms = 1;          // with something left to send
constexpr std::int64_t ns_per_ms = 1'000'000;

// MPI tells this to the ranks and to nobody else. The address exists as long as its socket and in
// no file system, but everybody may read it in /proc/net/unix; the token is in what is sent alone.
struct Secret {
  std::array<std::uint64_t, 2> address;
  std::array<std::uint64_t, 2> token;
};

// This is what a rank sends to another, with its descriptor beside it.
struct Message {
  std::array<std::uint64_t, 2> token;  // the receiver's
  std::int64_t rank;                   // the sender's
};

socklen_t fill(sockaddr_un& name, const Secret& secret) {
  name = {};
  name.sun_family = AF_UNIX;
  const int length = std::snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "rw%016lx%016lx",
                                   secret.address[0], secret.address[1]);
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
}

os::Descriptor open_socket() {
  return os::Descriptor(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

os::Descriptor listening_socket(Secret& secret) {
  os::Descriptor socket = open_socket();
  if (getrandom(&secret, sizeof secret, 0) != sizeof secret) return {};
  sockaddr_un name;
  const socklen_t length = fill(name, secret);
  if (!socket || bind(socket.get(), reinterpret_cast<sockaddr*>(&name), length) != 0 ||
      listen(socket.get(), waiting_room) != 0) {
    return {};
  }
  return socket;
}

// Returns the process that was at the other end when it connected or began to listen; -1 for
// another user's, who may have taken the address of a rank that has died.
pid_t process_behind(const os::Descriptor& connection) {
  ucred other{};
  socklen_t length = sizeof other;
  if (getsockopt(connection.get(), SOL_SOCKET, SO_PEERCRED, &other, &length) != 0) return -1;
  return other.uid == geteuid() ? other.pid : -1;
}

bool send_message(const os::Descriptor& connection, Message message, int descriptor) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  iovec data{&message, sizeof message};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  cmsghdr* rights = CMSG_FIRSTHDR(&header);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(rights), &descriptor, sizeof descriptor);
  return sendmsg(connection.get(), &header, MSG_NOSIGNAL) == sizeof message;
}

// Returns at the latest after `ms`. A signal does not shorten the wait.
void wait_for_input(const os::Descriptor& socket, std::int64_t ms) {
  const std::int64_t end = os::steady_ns() + ms * ns_per_ms;
  pollfd entry{socket.get(), POLLIN, 0};
  while (poll(&entry, 1, static_cast<int>(ms)) < 0 && errno == EINTR && ms > 0) {
    ms = (end - os::steady_ns()) / ns_per_ms;
  }
}

enum class Sent { yes, later, never };

// The message waits in the other's connection, so ours can be closed.
Sent send_to(const Secret& secret, pid_t process, std::int64_t rank, int descriptor) {
  const os::Descriptor connection = open_socket();
  sockaddr_un name;
  const socklen_t length = fill(name, secret);
  if (!connection) return Sent::never;
  if (connect(connection.get(), reinterpret_cast<sockaddr*>(&name), length) != 0) {
    return errno == EAGAIN || errno == EINTR ? Sent::later : Sent::never;  // full, for now
  }
  if (process_behind(connection) != process) return Sent::never;
  return send_message(connection, {secret.token, rank}, descriptor) ? Sent::yes : Sent::never;
}

// Returns the descriptor beside a message. All that came are ours to close; the result is valid if
// there is just one.
os::Descriptor only_descriptor(msghdr& header) {
  os::Descriptor only;
  int count = 0;
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr; part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t bytes = part->cmsg_len - CMSG_LEN(0);
    for (std::size_t at = 0; at + sizeof(int) <= bytes; at += sizeof(int), ++count) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(part) + at, sizeof descriptor);
      only.reset(descriptor);
    }
  }
  if (count != 1 || (header.msg_flags & MSG_CTRUNC) != 0) only.reset();
  return only;
}

// Receives the message of a rank that has connected. Returns an invalid descriptor unless a whole
// message came.
os::Descriptor receive_message(const os::Descriptor& connection, Message& message) {
  alignas(cmsghdr) char control[CMSG_SPACE(8 * sizeof(int))] = {};
  iovec data{&message, sizeof message};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  const ssize_t length = recvmsg(connection.get(), &header, MSG_CMSG_CLOEXEC);
  if (length < 0) return {};
  os::Descriptor descriptor = only_descriptor(header);
  const bool whole = length == sizeof message && (header.msg_flags & MSG_TRUNC) == 0;
  return whole ? std::move(descriptor) : os::Descriptor();
}

// This is one rank's part of the exchange. Strangers may connect and send whatever they like: they
// cannot make it wait longer, or leave anything open in this process.
class Exchange {
 public:
  Exchange(const os::Descriptor& socket, std::span<const Secret> secrets, int rank, int own,
           std::span<const RankFacts> facts, int patience_ms)
      : socket_(socket),
        secrets_(secrets),
        rank_(static_cast<std::size_t>(rank)),
        own_(own),
        facts_(facts),
        patience_ns_(std::int64_t{patience_ms} * ns_per_ms) {
    result_.resize(facts.size());
  }

  // Sends and receives in turn: queues are short, so a rank that only sent would block others.
  bool run() {
    const std::size_t size = facts_.size();
    std::int64_t deadline = os::steady_ns() + patience_ns_;
    for (std::size_t step = 1; step < size || received_ + 1 < size;) {
      const Sent sent = step < size ? send((rank_ + step) % size) : Sent::later;
      if (sent == Sent::never) return false;
      if (sent == Sent::yes) ++step;
      const bool moved = receive() || sent == Sent::yes;
      const std::int64_t now = os::steady_ns();
      if (moved) deadline = now + patience_ns_;
      if (now >= deadline) return false;
      if (!moved) wait_for_input(socket_, step < size ? step_ms : (deadline - now) / ns_per_ms + 1);
    }
    return true;
  }
  std::vector<os::Descriptor> take_result() { return std::move(result_); }

 private:
  Sent send(std::size_t to) const {
    return send_to(secrets_[to], facts_[to].process, static_cast<std::int64_t>(rank_), own_);
  }

  // Takes one connection. Returns true when it brought a rank's descriptor. (Strangers may connect
  // without end, so one is taken at a time.)
  bool receive() {
    const os::Descriptor connection(
        accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!connection || !is_of_team(process_behind(connection))) return false;
    wait_for_input(connection, patience_ns_ / ns_per_ms);  // it sends at once, unless it dies
    Message message{};
    os::Descriptor descriptor = receive_message(connection, message);
    if (!descriptor || message.token != secrets_[rank_].token) return false;
    const auto from = static_cast<std::size_t>(message.rank);
    if (from >= result_.size() || from == rank_ || result_[from]) return false;
    result_[from] = std::move(descriptor);
    ++received_;
    return true;
  }

  bool is_of_team(pid_t process) const {
    if (process <= 0) return false;
    for (const RankFacts& rank : facts_) {
      if (rank.process == process) return true;
    }
    return false;
  }

  const os::Descriptor& socket_;
  std::span<const Secret> secrets_;
  std::size_t rank_;
  int own_;
  std::span<const RankFacts> facts_;
  std::int64_t patience_ns_;
  std::size_t received_ = 0;
  std::vector<os::Descriptor> result_;
};

}  // namespace

std::vector<os::Descriptor> swap_descriptors(mpi::Comm comm, int own,
                                             std::span<const RankFacts> facts, int patience_ms) {
  Secret secret{};
  const os::Descriptor socket = listening_socket(secret);
  std::vector<Secret> secrets(facts.size());
  mpi::all_gather(&secret, secrets.data(), sizeof secret, comm);
  if (!mpi::true_on_all(comm, static_cast<bool>(socket))) return {};
  Exchange exchange(socket, secrets, mpi::rank(comm), own, facts, patience_ms);
  const bool done = exchange.run();
  // Nobody closes its socket before all have their descriptors.
  if (!mpi::true_on_all(comm, done)) return {};
  return exchange.take_result();
}

}  // namespace ropewalk::node
