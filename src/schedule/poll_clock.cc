// PollClock tells when a worker that computes looks after its messages.
#include "ropewalk/detail/poll_clock.hpp"

#include <algorithm>

#include "os/clock.hpp"

namespace ropewalk::detail {
namespace {

// A look at the messages may cost 6 % of the time.
constexpr std::int64_t blocks_of_time = 16;
// A large message over TCP moves only while somebody looks: at 10 Gbit/s 25 KB in 20 us.
constexpr std::int64_t longest_gap_ns = 20'000;

}  // namespace

bool PollClock::due() noexcept {
  began_ = os::steady_ns();
  return began_ >= next_;
}

void PollClock::polled() noexcept {
  const std::int64_t now = os::steady_ns();
  next_ = now + std::min(blocks_of_time * (now - began_), longest_gap_ns);
}

}  // namespace ropewalk::detail
