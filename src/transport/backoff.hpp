// Backoff: how a thread that polls makes room for others, ever more the longer it waits.
#pragma once

#include <cstddef>
#include <cstdint>

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
  void pause(std::int64_t awake_ns = awake_at_least_ns) noexcept;
  void reset() noexcept { *this = Backoff{}; }
  // Whether it has come to sleeping: the caller may then sleep on something better.
  bool patient() const noexcept { return nap_ns_ != 0; }

 private:
  unsigned rounds_ = 0;
  std::int64_t since_ns_ = 0;
  std::int64_t nap_ns_ = 0;
};

}  // namespace ropewalk::transport
