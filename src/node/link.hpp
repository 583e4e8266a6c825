// The way from this process to one other: its connections, and what is known of the other's life.
//
// A link has at most two connections, one that each side has made, so that two sides that connect
// at the same time need not agree on one. A connection counts once the other side has shown that it
// is the process that is meant: an address may lead elsewhere (bridges of containers have the same
// address on every node).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "os/network.hpp"

namespace ropewalk::node {

// Random, told to the ranks of the job alone: a stranger that connects does not know it.
struct ProcessId {
  std::array<std::uint64_t, 2> words{};
  friend bool operator==(const ProcessId&, const ProcessId&) = default;
};
ProcessId random_id();

// How a process is reached and what it is called; sent to other ranks as bytes.
struct Contact {
  static constexpr std::size_t most_addresses = 8;
  ProcessId id;
  std::uint64_t host = 0;  // equal where addresses mean the same: of the network namespace
  std::int32_t process = 0;
  std::uint16_t port = 0;  // 0: not known
  std::uint16_t addresses = 0;
  os::Address address[most_addresses];
  char host_name[64] = {};
};

// What processes tell each other; nothing else goes over a connection.
struct Frame {
  enum Kind : std::uint32_t {
    greeting = 1,  // subject: whom the sender means
    answer,        // the same, back
    ended,         // subject: a process that has ended
    broken         // a communicator; subject: the silent process it is broken by
  };
  std::array<char, 8> magic{'r', 'w', 'a', 'l', 'i', 'v', 'e', '1'};
  std::uint32_t kind = 0;
  std::uint32_t seconds = 0;  // of silence
  ProcessId sender;
  ProcessId subject;
  std::uint64_t communicator = 0;
};

class Connection {
 public:
  Connection() = default;
  Connection(os::Descriptor socket, std::int64_t now_ns) noexcept
      : socket_(std::move(socket)), since_ns_(now_ns) {}

  const os::Descriptor& socket() const noexcept { return socket_; }
  explicit operator bool() const noexcept { return static_cast<bool>(socket_); }
  std::int64_t since_ns() const noexcept { return since_ns_; }
  void close() noexcept { socket_.reset(); }

  // False when it has failed. What is sent is little and rare: it fits the kernel's buffer.
  bool send(const Frame&) noexcept;
  enum class Received { nothing, frame, closed };
  Received receive(Frame&) noexcept;

  os::Address address;         // that it was made to
  bool greeted = false;        // an attempt that is connected and waits for its answer
  std::size_t told_ended = 0;  // records that were sent over it
  std::size_t told_broken = 0;

 private:
  os::Descriptor socket_;
  std::int64_t since_ns_ = 0;
  std::size_t partial_bytes_ = 0;
  std::array<std::byte, sizeof(Frame)> partial_{};
};

struct Link {
  Contact contact;
  bool initiates = false;  // this side makes the first connection
  Connection made;         // by this side, proved
  Connection taken;        // by the other side, proved
  std::vector<Connection> attempts;
  std::optional<os::Address> proved;  // where the process was once found
  std::string failure;                // of the last round of attempts
  int refusals = 0;                   // rounds in which `proved` was refused
  bool in_round = false;              // attempts are under way
  bool refused = false;               // in this round
  bool doubtful = false;              // silent for so long that other addresses are tried
  bool ended = false;                 // for good
  bool silent = false;                // may end
  std::int64_t next_round_ns = 0;
  std::int64_t silence_ns = 0;

  bool up() const noexcept { return made || taken; }
  bool needs_attempts() const noexcept {
    return !ended && contact.port != 0 && (!up() || doubtful);
  }
  // Before it is proved there is one round, of the side that initiates.
  bool may_attempt() const noexcept { return proved || (initiates && failure.empty()); }
  // Where to look for it from a process that has the addresses `own` on `own_host`.
  std::vector<os::Address> candidates(const Contact& own) const;
  // Since anything was heard over its connections; nothing where there is none.
  std::optional<std::int64_t> ns_since_heard() const noexcept;
  // use(connection) for every one that leads to the process: also an attempt where it was once
  // found that has been taken. One that is stopped does not answer, but its kernel does.
  template <class Self, class Use>
  static void for_each_of(Self& link, Use use) {
    if (link.made) use(link.made);
    if (link.taken) use(link.taken);
    for (auto& attempt : link.attempts) {
      if (attempt && attempt.greeted && link.proved == attempt.address) use(attempt);
    }
  }
};

}  // namespace ropewalk::node
