// The failure detector: one thread of each process that learns which processes of the job have
// ended or fallen silent, and tells the others.
//
// It sleeps in poll. A process that ends closes its connections (connections.hpp). The kernels find
// out which processes have fallen silent (keepalive.hpp), but only while some rank waits for long.
// So the detector of a healthy job does nothing.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "node/connections.hpp"
#include "node/failure_notices.hpp"
#include "node/keepalive.hpp"

namespace ropewalk::node {

class FailureDetector {
 public:
  // Returns the detector of this process, which is made at the first call and stays to the end.
  // Returns null where it cannot be, and in a child of fork; `reason` says why. All of its calls
  // name the same `timeout_s`.
  static FailureDetector* of_process(int timeout_s, std::string& reason);

  const Contact& own() const noexcept { return connections_.own(); }
  int timeout_s() const noexcept { return keepalive_.timeout_s(); }

  // Connects to those processes, unless it is connected already. Returns when each is reached, or
  // when one cannot be: then it says why, else it returns nothing. One of the two sides initiates.
  struct Neighbour {
    Contact contact;
    bool initiates;
  };
  std::string connect(std::span<const Neighbour>);

  // A thread that waits calls this again and again; it costs a reading of the clock.
  void waiting() noexcept;

  // Grows when there is something new to be found.
  std::uint32_t news() const noexcept { return notices_.news(); }
  struct Findings {
    std::vector<ProcessId> ended;              // for good
    std::vector<ProcessId> silent;             // for the time-out and longer
    std::optional<BrokenCommunicator> broken;  // what another rank has said of the communicator
  };
  Findings find(std::uint64_t communicator) const;

  // Tells all others that this rank has given the communicator up, or that it knows for certain
  // that a process has ended.
  void tell(const BrokenCommunicator&);
  void tell_ended(const ProcessId&);

  FailureDetector(const FailureDetector&) = delete;
  FailureDetector& operator=(const FailureDetector&) = delete;

 private:
  explicit FailureDetector(int timeout_s);
  bool open(std::string& reason);
  bool start(std::string& reason);
  void run() noexcept;
  void loop();
  std::vector<PollEntry> prepare(int& timeout_ms);
  void handle(const PollEntry&, short events, std::int64_t now);
  void wake() const noexcept;

  static void before_fork() noexcept;
  static void after_fork_in_parent() noexcept;
  static void after_fork_in_child() noexcept;

  os::Descriptor wake_up_;  // an eventfd: the thread has something to do
  mutable std::mutex mutex_;
  std::condition_variable changed_;  // some process may have been reached, or cannot be
  FailureNotices notices_;
  Keepalive keepalive_;
  Connections connections_{notices_, keepalive_};
};

}  // namespace ropewalk::node
