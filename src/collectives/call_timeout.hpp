// How long a rank has been in the call under way.
#pragma once

#include <cstdint>

#include "os/clock.hpp"

namespace ropewalk::collectives {

class CallTimeout {
 public:
  explicit CallTimeout(int seconds) : seconds_(seconds) {}  // 0: for ever
  int seconds() const noexcept { return seconds_; }

  // To be asked again and again while the rank waits in the call of that number. The time begins
  // at the first question, so that calls that wait for a moment only read no clock.
  bool is_over(std::uint64_t call) noexcept {
    if (seconds_ == 0) return false;
    const std::int64_t now = os::steady_ns();
    if (call != call_) {
      call_ = call;
      since_ns_ = now;
    }
    return now - since_ns_ >= seconds_ * os::second_ns;
  }

 private:
  int seconds_;
  std::uint64_t call_ = 0;  // the call under way
  std::int64_t since_ns_ = 0;
};

}  // namespace ropewalk::collectives
