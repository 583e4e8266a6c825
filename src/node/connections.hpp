// The TCP connections between this process and others of the job. When a process ends, its kernel
// closes them, and the others notice at once.
//
// A process that connects sends a greeting. Its connection is *pending* here until the greeting has
// come, then it is the *accepted* connection of that process. An *outgoing* connection begins as
// one of the attempts at all addresses that a process may have, and is established by the answer to
// its greeting.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "node/failure_notices.hpp"
#include "node/keepalive.hpp"
#include "node/monitored_process.hpp"

namespace ropewalk::node {

// An entry is something that poll is asked about.
struct PollEntry {
  enum Kind { wake_up, listener, pending, attempt, established } kind;
  int descriptor;
  short wanted;
  MonitoredProcess* process = nullptr;
  Connection* connection = nullptr;
};

// All are called with the detector's mutex held.
class Connections {
 public:
  Connections(FailureNotices& notices, Keepalive& keepalive) noexcept
      : notices_(notices), keepalive_(keepalive) {}

  // Listens to other processes. Returns false with errno set where there is no network.
  bool listen();
  const Contact& own() const noexcept { return own_; }

  MonitoredProcess& process(const ProcessId&);  // known from now on
  MonitoredProcesses processes() const noexcept { return processes_; }
  // That process has ended, for good.
  void end(const ProcessId&);

  // Begins and ends attempts as it is time for them.
  void attend(std::int64_t now);
  void send_notices();
  void add_entries(std::vector<PollEntry>&) const;
  // When attend() is to be called again; INT64_MAX for never.
  std::int64_t next_ns(std::int64_t now) const noexcept;
  void handle(const PollEntry&, short events, std::int64_t now);
  void remove_closed();

  void close_all() noexcept;

 private:
  void accept_pending(std::int64_t now);
  bool keeps_pending(Connection&, std::int64_t now);
  void handle_attempt(MonitoredProcess&, Connection&, short events);
  void greet(MonitoredProcess&, Connection&);
  void handle_established(MonitoredProcess&, Connection&, std::int64_t now);
  void establish(MonitoredProcess&, Connection& place, Connection&& connection);
  void take_in(const Frame&);
  void retry(MonitoredProcess&, std::int64_t now);
  void begin_round(MonitoredProcess&, std::int64_t now);
  void end_round(MonitoredProcess&, std::int64_t now);
  MonitoredProcess* find(const ProcessId&) const;

  FailureNotices& notices_;
  Keepalive& keepalive_;
  Contact own_;
  os::Descriptor listener_;
  std::vector<std::unique_ptr<MonitoredProcess>> processes_;
  std::vector<std::unique_ptr<Connection>> pending_;
  std::int64_t accepts_from_ns_ = 0;  // no connection can be accepted before; 0: they can
};

}  // namespace ropewalk::node
