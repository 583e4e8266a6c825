// A detail of the templates in schedule.hpp, and no part of the public interface.
#pragma once

#include <cstdint>

#include "ropewalk/export.hpp"

namespace ropewalk::detail {

// Decides when a worker that computes makes progress with its messages: at first after each block,
// then when it has computed for 16 times as long as the last poll took, and at least every 20 us.
class RW_EXPORT PollClock {
 public:
  bool due() noexcept;
  void polled() noexcept;  // the poll that was due is over

 private:
  std::int64_t began_ = 0;
  std::int64_t next_ = 0;
};

}  // namespace ropewalk::detail
