#include "os/futex.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

namespace ropewalk::os {

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

// FUTEX_PRIVATE_FLAG is used nowhere, because sleepers and wakers are different processes.
FutexResult futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t expected,
                       std::int64_t timeout_ns) noexcept {
  timespec limit{};
  timespec* timeout = nullptr;
  if (timeout_ns >= 0) {
    limit.tv_sec = timeout_ns / 1'000'000'000;
    limit.tv_nsec = timeout_ns % 1'000'000'000;
    timeout = &limit;
  }
  const long result = syscall(SYS_futex, &word, FUTEX_WAIT, expected, timeout, nullptr, 0);
  if (result == 0 || errno == EINTR) return FutexResult::woken;
  return errno == ETIMEDOUT ? FutexResult::timeout : FutexResult::changed;
}

int futex_wake(const std::atomic<std::uint32_t>& word, int count) noexcept {
  const long woken = syscall(SYS_futex, &word, FUTEX_WAKE, count, nullptr, nullptr, 0);
  return woken < 0 ? 0 : static_cast<int>(woken);
}

}  // namespace ropewalk::os
