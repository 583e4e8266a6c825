#include "transport/backoff.hpp"

#include <sched.h>
#include <time.h>

#include <algorithm>

#include "os/clock.hpp"

namespace ropewalk::transport {
namespace {

// Polls before the first yield: a few microseconds of MPI_Test, less than a switch of threads.
constexpr unsigned polls_before_yield = 16;
// A yield costs 0.3 us on an idle core, a reading of the clock 0.02 us.
constexpr unsigned yields_per_clock = 8;
// From the kernel's default timer slack of 50 us up to a delay that nobody sees.
constexpr std::int64_t first_nap_ns = 50'000;
constexpr std::int64_t longest_nap_ns = 500'000;

void sleep_for(std::int64_t ns) noexcept {
  const timespec time{0, static_cast<long>(ns)};
  nanosleep(&time, nullptr);  // a signal that cuts it short does no harm
}

}  // namespace

void Backoff::pause(std::int64_t awake_ns) noexcept {
  ++rounds_;
  if (rounds_ <= polls_before_yield) return;
  if (patient()) {
    sleep_for(nap_ns_);
    nap_ns_ = std::min(nap_ns_ + nap_ns_ / 4, longest_nap_ns);
    return;
  }
  sched_yield();
  if (rounds_ % yields_per_clock != 0) return;
  const std::int64_t now = os::steady_ns();
  if (since_ns_ == 0) since_ns_ = now;
  if (now - since_ns_ > awake_ns) nap_ns_ = first_nap_ns;
}

}  // namespace ropewalk::transport
