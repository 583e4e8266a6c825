// Whether the ranks of a communicator live, wherever they are: an error that names the dead instead
// of an endless wait.
//
// It does not use MPI, which hangs or ends the job when a rank is gone. Ranks of the same node are
// watched by pidfd. Where there are several nodes, each process's failure detector has connections
// to some others (failure_detector.hpp): to all in small communicators, and to those 1, 2, 4, 8 ...
// ranks away in large ones, so that a notice reaches every process in a few steps, around any node
// that is gone.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "mpi/mpi.hpp"
#include "node/failure_detector.hpp"
#include "os/pidfd.hpp"

namespace ropewalk::node {

class Liveness final {
 public:
  // Collective over `comm`. Returns null on every rank where it is switched off
  // (ROPEWALK_TIMEOUT=off), or where ranks cannot reach each other beside MPI; `reason` says why.
  // Throws Error(argument) on every rank for a malformed ROPEWALK_TIMEOUT.
  static std::unique_ptr<Liveness> create(mpi::Comm comm, std::string& reason);

  // A rank has ended, as this rank has seen for itself: throws, and the others are told.
  [[noreturn]] void lost(int rank);

  // To be called in the slow part of every wait, from any thread, as often as possible; it costs
  // about 50 ns. Throws Error(peer_dead), and from then on always.
  void look();
  // Does the same at the start of a call, at the cost of one load.
  void require_whole() {
    if (broken()) throw_lost();
  }
  bool broken() const noexcept { return broken_.load(std::memory_order_acquire); }

  // To be called when MPI has reported an error in a wait: if a rank has died, that is the better
  // error, and it may take a moment until it is known. Throws it, or returns when there is none.
  void explain();

  Liveness(const Liveness&) = delete;
  Liveness& operator=(const Liveness&) = delete;

 private:
  struct Member {
    Contact contact;
    os::ProcessWatch life;  // of ranks of one node only
  };
  struct Lost {
    std::vector<int> ranks;  // ascending
    std::uint32_t seconds;   // of silence; 0: they have ended
  };
  Liveness() = default;
  void open_processes();
  bool connect(std::string& reason);
  void look_at_processes();
  void examine();
  std::vector<int> ranks_of(std::span<const ProcessId>) const;
  std::string text_of(const Lost&) const;
  [[noreturn]] void lose(const Lost&);
  [[noreturn]] void throw_lost();

  FailureDetector* detector_ = nullptr;  // null: all ranks are on one node
  std::uint64_t number_ = 0;             // of the communicator, the same on all ranks
  int rank_ = 0;
  std::vector<Member> members_;
  std::vector<std::pair<std::array<std::uint64_t, 2>, int>> ranks_;  // by id, ascending
  std::atomic<std::uint32_t> seen_{0};
  std::atomic<std::int64_t> next_look_ns_{0};
  std::atomic<bool> broken_{false};  // released after text_ is written
  std::mutex mutex_;
  std::string text_;
};

// Returns ROPEWALK_TIMEOUT in seconds, 0 for off. Throws Error(argument) where it is malformed.
int liveness_timeout_s();

}  // namespace ropewalk::node
