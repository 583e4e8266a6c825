#include "node/handover.hpp"

#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <optional>

namespace ropewalk::node {
namespace {

constexpr int patience_ms = 10000;  // a peer that sends nothing for so long has failed

// An abstract address nobody can guess: it exists as long as its socket and in no file system.
struct Address {
  char text[40];
};

Address random_address() {
  std::uint64_t words[2] = {};
  if (getrandom(words, sizeof words, 0) != sizeof words) words[0] = static_cast<unsigned>(getpid());
  Address address{};
  std::snprintf(address.text, sizeof address.text, "rw%016lx%016lx", words[0], words[1]);
  return address;
}

socklen_t fill(sockaddr_un& to, const Address& address) {
  to = {};
  to.sun_family = AF_UNIX;
  const std::size_t length = std::strlen(address.text);
  std::memcpy(to.sun_path + 1, address.text, length);
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
}

os::Descriptor bound_socket(const Address& address) {
  os::Descriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un name;
  const socklen_t length = fill(name, address);
  const int on = 1;
  if (socket.get() < 0 || bind(socket.get(), reinterpret_cast<sockaddr*>(&name), length) != 0 ||
      setsockopt(socket.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0) {
    return os::Descriptor(-1);
  }
  return socket;
}

// One datagram: the sender's rank, its descriptor beside it.
bool send_descriptor(int socket, const Address& address, int rank, int descriptor) {
  sockaddr_un to;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  iovec data{&rank, sizeof rank};
  msghdr message{};
  message.msg_name = &to;
  message.msg_namelen = fill(to, address);
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  return sendmsg(socket, &message, MSG_NOSIGNAL) == sizeof rank;
}

struct Received {
  int rank = -1;
  os::Descriptor descriptor{-1};
  uid_t user = static_cast<uid_t>(-1);
};

void read_control(msghdr& message, Received& received) {
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET) continue;
    if (header->cmsg_type == SCM_RIGHTS) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(header), sizeof descriptor);
      received.descriptor = os::Descriptor(descriptor);
    } else if (header->cmsg_type == SCM_CREDENTIALS) {
      ucred credentials{};
      std::memcpy(&credentials, CMSG_DATA(header), sizeof credentials);
      received.user = credentials.uid;
    }
  }
}

std::optional<Received> receive_descriptor(int socket) {
  Received received;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(ucred))] = {};
  iovec data{&received.rank, sizeof received.rank};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != sizeof received.rank) return std::nullopt;
  read_control(message, received);
  return received;
}

// Sends and receives in turn: queues of datagram sockets are short, so nobody may only send.
bool exchange(int socket, std::span<const Address> addresses, int rank, int own,
              std::vector<os::Descriptor>& result) {
  const int size = static_cast<int>(addresses.size());
  int missing = size - 1;
  for (int step = 1; step < size || missing > 0;) {
    bool moved = false;
    if (step < size && send_descriptor(socket, addresses[(rank + step) % size], rank, own)) {
      ++step;
      moved = true;
    } else if (step < size && errno != EAGAIN && errno != EWOULDBLOCK) {
      return false;
    }
    while (auto received = receive_descriptor(socket)) {
      moved = true;
      // Whoever else found the address, only this user's processes are believed.
      if (received->user != geteuid() || received->rank < 0 || received->rank >= size) continue;
      if (result[received->rank].get() < 0) --missing;
      result[received->rank] = std::move(received->descriptor);
    }
    pollfd wait{socket, POLLIN, 0};
    // With something left to send, a full queue of a peer is waited for in short steps.
    if (!moved && poll(&wait, 1, step < size ? 1 : patience_ms) == 0 && step >= size) return false;
  }
  return true;
}

}  // namespace

std::vector<os::Descriptor> swap_descriptors(mpi::Comm comm, int own,
                                             std::span<const RankFacts> facts) {
  const int rank = mpi::rank(comm);
  const Address address = random_address();
  const os::Descriptor socket = bound_socket(address);
  std::vector<Address> addresses(facts.size());
  mpi::all_gather(&address, addresses.data(), sizeof address, comm);
  if (!all_agree(comm, socket.get() >= 0)) return {};
  std::vector<os::Descriptor> result;
  for (std::size_t peer = 0; peer < facts.size(); ++peer) result.emplace_back(-1);
  const bool done = exchange(socket.get(), addresses, rank, own, result);
  // Nobody closes its socket before all have their descriptors.
  if (!all_agree(comm, done)) return {};
  return result;
}

}  // namespace ropewalk::node
