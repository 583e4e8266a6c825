// Which processes have fallen silent: while a thread of this process waits for long, the kernels of
// the nodes send each other a question every few seconds (TCP keepalive). A process that computes,
// or is stopped by a debugger, does not answer, but its kernel does.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "node/monitored_process.hpp"

namespace ropewalk::node {

using MonitoredProcesses = std::span<const std::unique_ptr<MonitoredProcess>>;

// All but waiting() are called with the detector's mutex held.
class Keepalive {
 public:
  explicit Keepalive(int timeout_s) noexcept;
  int timeout_s() const noexcept { return timeout_s_; }

  // A thread that waits calls this again and again; it costs a reading of the clock. Returns true
  // when the detector's thread must be woken, so that the kernels begin to ask.
  bool waiting() noexcept;

  bool active() const noexcept { return active_.load(std::memory_order_relaxed); }
  // When the thread is to come again; INT64_MAX for never.
  std::int64_t next_ns() const noexcept;
  // While kernels ask, they ask over this connection, too.
  void use(const Connection&) const noexcept;
  // To be called by the thread whenever it comes. Returns true when a process has newly fallen
  // silent.
  bool tick(MonitoredProcesses, std::int64_t now);

 private:
  void begin(MonitoredProcesses, std::int64_t now);
  void end(MonitoredProcesses);
  bool falls_silent(MonitoredProcess&, std::int64_t since_ns, std::int64_t counted_ns) const;

  const int timeout_s_;
  const int interval_s_;  // between two questions
  std::int64_t last_tick_ns_ = 0;
  // This is when a thread of this process waited last. Threads may overwrite each other's value,
  // which does no harm.
  std::atomic<std::int64_t> wait_began_ns_{0};
  std::atomic<std::int64_t> last_look_ns_{0};
  std::atomic<bool> active_{false};
};

}  // namespace ropewalk::node
