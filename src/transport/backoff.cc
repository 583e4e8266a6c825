#include "transport/backoff.hpp"

#include <sched.h>
#include <time.h>

namespace ropewalk::transport {
namespace {

void sleep_for(std::int64_t ns) noexcept {
  const timespec time{0, static_cast<long>(ns)};
  nanosleep(&time, nullptr);  // a signal that cuts it short does no harm
}

}  // namespace

void Backoff::pause(std::int64_t awake_ns) noexcept {
  ++rounds_;
  if (rounds_ < polls_before_yield) return;
  if (rounds_ == polls_before_yield) {
    clock_ = os::IdleClock(longest_nap_ns, awake_ns);
    awake_until_ = clock_.now() + awake_ns;
  } else {
    clock_.poll_ends();
    was_long_ = was_long_ || clock_.now() > awake_until_;
  }
  if (clock_.awake()) {
    sched_yield();
  } else {
    sleep_for(clock_.nap_ns());
  }
  clock_.poll_begins();
}

}  // namespace ropewalk::transport
