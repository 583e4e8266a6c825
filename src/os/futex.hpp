// Sleeping on a word of shared memory until another process wakes it.
#pragma once

#include <atomic>
#include <cstdint>

namespace ropewalk::os {

enum class FutexResult { woken, changed, timeout };

// Sleeps while `word` holds `expected`, at most `timeout_ns` (negative: for ever). Works between
// processes: the kernel finds the word by its page, so each may have it at another address.
// `woken` may be spurious (a signal, too): the caller checks its condition again. It orders no
// memory by itself: read the condition with acquire, which pairs with the waker's release store.
FutexResult futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t expected,
                       std::int64_t timeout_ns = -1) noexcept;

// Wakes up to `count` sleepers, returns how many there were. Store the new value first.
int futex_wake(const std::atomic<std::uint32_t>& word, int count = INT32_MAX) noexcept;

}  // namespace ropewalk::os
