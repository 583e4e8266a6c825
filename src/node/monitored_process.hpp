// One other process of the job as the failure detector sees it: how it is reached, the connections
// to it, and what is known of its life.
//
// There are at most two established connections, one that each side has opened, so that two sides
// that connect at the same time need not agree on one. A connection is established once the other
// side has proved that it is the intended process: an address may lead to another one (bridges of
// containers have the same address on every node).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "os/network.hpp"

namespace ropewalk::node {

// This is a random number that only the ranks of the job know: another program that connects does
// not.
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
// Returns the contact of this process, which listens on the port.
Contact own_contact(std::uint16_t port);

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

  // Returns false when it has failed. What is sent is little and rare: it fits the kernel's buffer.
  bool send(const Frame&) noexcept;
  enum class Received { nothing, frame, closed };
  Received receive(Frame&) noexcept;

  os::Address address;         // of the other side
  bool greeted = false;        // an attempt that is connected and waits for its answer
  std::size_t told_ended = 0;  // notices that were sent over it
  std::size_t told_broken = 0;

 private:
  os::Descriptor socket_;
  std::int64_t since_ns_ = 0;
  std::size_t partial_bytes_ = 0;
  std::array<std::byte, sizeof(Frame)> partial_{};
};

struct MonitoredProcess {
  Contact contact;
  bool initiates = false;  // this side opens the first connection
  Connection outgoing;     // opened by this side, established
  Connection accepted;     // opened by the other side, established
  std::vector<Connection> attempts;
  std::optional<os::Address> reached_at;  // where it was reached last
  std::string failure;                    // of the last round of attempts
  int refusals = 0;                       // rounds in which `reached_at` refused
  bool in_round = false;                  // attempts are under way
  bool refused = false;                   // in this round
  bool doubtful = false;                  // silent for so long that other addresses are tried
  bool ended = false;                     // for good
  bool silent = false;                    // it may be heard again
  std::int64_t next_round_ns = 0;
  std::int64_t silence_ns = 0;

  bool connected() const noexcept { return outgoing || accepted; }
  bool needs_attempts() const noexcept {
    return !ended && contact.port != 0 && (!connected() || doubtful);
  }
  // Before the process is reached there is one round of attempts, by the side that initiates.
  bool may_attempt() const noexcept { return reached_at || (initiates && failure.empty()); }
  // Says where to look for it from the process `own`.
  std::vector<os::Address> candidates(const Contact& own) const;
  void note_failure(const os::Address&, int error);
  void end() noexcept;
  void close_all() noexcept;
  // Returns the time since anything was heard over its connections; nothing where there is none.
  std::optional<std::int64_t> ns_since_heard() const noexcept;
  // Calls use(connection) for every one that leads to the process, including an accepted attempt at
  // an address where it was once reached. A process that is stopped does not answer, but its kernel
  // does.
  template <class Self, class Use>
  static void for_each_connection(Self& process, Use use) {
    if (process.outgoing) use(process.outgoing);
    if (process.accepted) use(process.accepted);
    for (auto& attempt : process.attempts) {
      if (attempt && attempt.greeted && process.reached_at == attempt.address) use(attempt);
    }
  }
};

}  // namespace ropewalk::node
