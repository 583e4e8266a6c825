// How long a thread that polls should stay awake, and how long it may sleep between two polls.
//
// Nothing tells whether a poll of MPI found work, but its time does: a poll that finds nothing is
// short, and takes the same time again and again (0.04 us in MPICH and Open MPI over shared memory,
// 0.3 us where each poll asks the kernel about TCP). The part of a poll beyond twice the usual time
// counts as work, and for each nanosecond of work the thread stays awake for twenty. So a stream of
// messages, where 8 % of the time and more is work, keeps the thread awake, as MPI's own waiting
// would; the disturbances of a busy machine, 1 or 2 % of the time, do not.
//
// A sleep is never longer than a fixed fraction of the time that the thread has already waited, so
// that it lengthens any wait by a few per cent at most.
#pragma once

#include <algorithm>
#include <cstdint>

#include "os/clock.hpp"

namespace ropewalk::os {

class IdleClock {
 public:
  static constexpr std::int64_t awake_at_first_ns = 10'000'000;  // well above any healthy wait
  static constexpr std::int64_t shortest_nap_ns = 50'000;        // the kernel's timer slack

  explicit IdleClock(std::int64_t longest_nap_ns, std::int64_t awake_ns = awake_at_first_ns,
                     std::int64_t now = steady_ns()) noexcept
      : longest_nap_ns_(longest_nap_ns),
        ended_(now),
        quiet_since_(ended_),
        awake_until_(ended_ + awake_ns) {}

  void poll_begins(std::int64_t now = steady_ns()) noexcept {
    began_ = now;
    if (began_ - ended_ <= away_ns) return;
    cold_ = cold_polls;
    has_slept_ = !awake();
  }
  void poll_ends(std::int64_t now = steady_ns()) noexcept {
    ended_ = now;
    const std::int64_t took = ended_ - began_;
    if (cold_ > 0) {
      --cold_;
      if (has_slept_) awake_until_ = std::max(awake_until_, ended_ + look_when_cold_ns);
      if (took > cold_work_ns) earn(took);
    } else {
      if (took > 2 * usual_ns() + clock_tick_ns) earn(took - usual_ns());
      learn(took);
    }
  }
  // Time has passed without a poll.
  void pass(std::int64_t now) noexcept { ended_ = now; }
  bool awake() const noexcept { return ended_ < awake_until_; }
  std::int64_t now() const noexcept { return ended_; }  // when the last poll ended
  std::int64_t nap_ns() const noexcept {
    return std::clamp((ended_ - quiet_since_) / part_of_quiet, shortest_nap_ns, longest_nap_ns_);
  }

 private:
  // The clock counts in steps of 10 ns and more.
  static constexpr std::int64_t clock_tick_ns = 20;
  static constexpr std::int64_t part_of_quiet = 32;
  // A thread that was away so long, asleep or because another had its core, finds the caches
  // cold: its first polls take 0.1 to 5 us with nothing to do, and more than cold_work_ns with a
  // message of a rendezvous. A peer that waits for an answer sends its next request some
  // microseconds after it.
  static constexpr std::int64_t away_ns = 5'000;
  static constexpr int cold_polls = 4;
  static constexpr std::int64_t cold_work_ns = 8'000;
  static constexpr std::int64_t look_when_cold_ns = 4'000;
  static constexpr std::int64_t awake_per_work = 20;
  // The quiet time ends when one poll has message_ns of work, as the copy of a large message has,
  // or when work has earned busy_ns awake, which only traffic does.
  static constexpr std::int64_t message_ns = 16'000;
  static constexpr std::int64_t busy_ns = 1'000'000;
  // One poll counts for so much work at most: the host of a virtual machine takes the core away for
  // longer, and not for work.
  static constexpr std::int64_t most_work_ns = 10'000;

  void earn(std::int64_t work_ns) noexcept {
    const std::int64_t earned = std::min(work_ns, most_work_ns) * awake_per_work;
    awake_until_ = std::min(std::max(awake_until_, ended_) + earned, ended_ + awake_at_first_ns);
    if (work_ns > message_ns || awake_until_ - ended_ > busy_ns) quiet_since_ = ended_;
  }
  // Learns the time that a quarter of the polls stay below, in 64ths of a nanosecond. That is what
  // a poll with nothing to do takes, as long as one in four finds nothing.
  void learn(std::int64_t took) noexcept {
    if (usual_ == 0) usual_ = took * 64;
    usual_ += took * 64 >= usual_ ? usual_ / 256 : -3 * (usual_ / 256);
  }
  std::int64_t usual_ns() const noexcept { return usual_ / 64; }

  std::int64_t longest_nap_ns_;
  std::int64_t began_ = 0;
  std::int64_t ended_;
  std::int64_t quiet_since_;
  std::int64_t awake_until_;
  std::int64_t usual_ = 0;
  int cold_ = cold_polls;
  bool has_slept_ = false;  // and was not just away: what came meanwhile is looked for
};

}  // namespace ropewalk::os
