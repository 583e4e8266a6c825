// How often a rank that waits for others looks for dead ones.
#pragma once

#include <cstdint>

#include "os/clock.hpp"

namespace ropewalk::preload {

// Every 5 ms, as in all waits for ranks (os/waiting.hpp).
class RareLook {
 public:
  // To be asked whenever a rank has waited in vain. The clock is read but now and then.
  bool is_due() noexcept {
    if (++asked_ % asked_per_clock != 0) return false;
    const std::int64_t now = os::steady_ns();
    if (now - looked_ns_ < period_ns) return false;
    looked_ns_ = now;
    return true;
  }

 private:
  static constexpr unsigned asked_per_clock = 16;
  static constexpr std::int64_t period_ns = 5'000'000;

  unsigned asked_ = 0;
  std::int64_t looked_ns_ = 0;
};

}  // namespace ropewalk::preload
