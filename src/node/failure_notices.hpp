// The news that every process of the job must learn: which processes have ended, and which
// communicators ranks have given up. Each notice is passed on over all connections, so that every
// process with any connection learns it; ranks need not know whom they wait for.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "node/monitored_process.hpp"

namespace ropewalk::node {

// A rank has given this communicator up.
struct BrokenCommunicator {
  std::uint64_t communicator;
  ProcessId subject;      // the process it is broken by
  std::uint32_t seconds;  // of its silence; 0: it has ended
};

// All but news() are called with the detector's mutex held.
class FailureNotices {
 public:
  // Grows when there is something new to be found.
  std::uint32_t news() const noexcept { return news_.load(std::memory_order_acquire); }
  void count_news() noexcept { news_.fetch_add(1, std::memory_order_release); }

  // These have no effect where the news is known.
  void add_ended(const ProcessId&);
  void add_broken(const BrokenCommunicator&);

  const std::vector<ProcessId>& ended() const noexcept { return ended_; }
  bool has_ended(const ProcessId&) const;
  std::optional<BrokenCommunicator> broken(std::uint64_t communicator) const;

  // Sends the notices that have not been sent over the connection yet. Returns false when it has
  // failed.
  bool send(Connection&, const ProcessId& own) const;

 private:
  std::vector<ProcessId> ended_;
  std::vector<BrokenCommunicator> broken_;
  std::atomic<std::uint32_t> news_{0};
};

}  // namespace ropewalk::node
