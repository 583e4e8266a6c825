// Backoff: how a thread that polls makes room for others, ever more the longer it waits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "os/idle_clock.hpp"

namespace ropewalk::transport {

// Polls at full speed first, then yields its core, and sleeps between polls once nothing has come
// for so long that the peer is clearly not running. Ranks may outnumber cores: what a waiting
// thread waits for may need the very core it polls on.
// A wait this long may sleep: well above the 2 ms that 25 MB take at 100 Gbit/s.
inline constexpr std::int64_t awake_at_least_ns = 10'000'000;

// How long a wait for so many bytes stays awake: as long as they take at 100 MB/s, less than
// 1 Gbit/s. Over TCP nothing moves while all ranks sleep, and the wire is idle.
constexpr std::int64_t awake_ns_for(std::size_t bytes) noexcept {
  return awake_at_least_ns + static_cast<std::int64_t>(bytes) * 10;
}

class Backoff {
 public:
  // Between two polls of something that this thread polls. The wait stays awake so long, and longer
  // while polls find work (os::IdleClock).
  void pause(std::int64_t awake_ns = awake_at_least_ns) noexcept;
  void reset() noexcept {
    rounds_ = 0;
    was_long_ = false;
  }
  // Whether the wait has lasted so long that the caller should look whether its peers live: between
  // all sleeps, and now and then where work has kept it awake since.
  bool patient() const noexcept {
    return was_long_ && (!clock_.awake() || rounds_ % rounds_per_look == 0);
  }

 private:
  // A few microseconds of MPI_Test, less than a switch of threads.
  static constexpr unsigned polls_before_yield = 16;
  static constexpr unsigned rounds_per_look = 64;
  // A delay that nobody sees.
  static constexpr std::int64_t longest_nap_ns = 500'000;

  unsigned rounds_ = 0;
  bool was_long_ = false;  // past the time that it stays awake at first
  std::int64_t awake_until_ = 0;
  os::IdleClock clock_{longest_nap_ns};
};

}  // namespace ropewalk::transport
