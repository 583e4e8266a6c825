#include "os/waiting.hpp"

#include <sched.h>
#include <time.h>

#include "os/shared_core.hpp"

namespace ropewalk::os {

void Waiting::restart(std::int64_t awake_ns) noexcept {
  awake_ns_ = awake_ns;
  looks_ = 0;
  slept_ = false;
  if (policy_->spins == 0) begin_yields();
}

void Waiting::begin_yields() noexcept {
  checked_ns_ = steady_ns();
  clock_ = IdleClock(policy_->longest_nap_ns, awake_ns_, checked_ns_);
  awake_until_look_ = policy_->spins + policy_->looks_awake + 1;
}

SharedCore& SharedCore::of_this_thread() noexcept {
  constinit thread_local static SharedCore core;
  return core;
}

bool Waiting::core_is_shared() const noexcept {
  return SharedCore::of_this_thread().is_shared(clock_.now());
}

void Waiting::yield() noexcept {
  if (!policy_->leaves_shared_core) {
    sched_yield();
    return;
  }
  const std::int64_t began = steady_ns();
  sched_yield();
  SharedCore::of_this_thread().yielded(began, steady_ns());
}

bool Waiting::check_due() noexcept {
  if (spins() || clock_.now() - checked_ns_ < check_ns) return false;
  checked_ns_ = clock_.now();
  return true;
}

void Waiting::sleep_for(std::int64_t ns) noexcept {
  const timespec time{0, static_cast<long>(ns)};
  nanosleep(&time, nullptr);  // a signal that cuts it short does no harm
}

}  // namespace ropewalk::os
