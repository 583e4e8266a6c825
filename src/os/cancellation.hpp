// Threads that are cancelled (pthread_cancel) while they are in the library.
#pragma once

#include <pthread.h>

namespace ropewalk::os {

// While it lives, this thread is not cancelled. Opening, reading and closing files are cancellation
// points, at which a thread would leave functions that nothing may leave that way: those of malloc
// are none, and hold locks.
class NotCancelled {
 public:
  NotCancelled() noexcept { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~NotCancelled() { pthread_setcancelstate(before_, nullptr); }
  NotCancelled(const NotCancelled&) = delete;
  NotCancelled& operator=(const NotCancelled&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace ropewalk::os
