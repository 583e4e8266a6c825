// The words that workers of a loop share. tests/model replaces this header by one of the same name,
// whose words report every access.
#pragma once

#include <atomic>
#include <cstdint>

namespace ropewalk::schedule {

// Read and written by any worker.
using Word = std::atomic<std::uint64_t>;

}  // namespace ropewalk::schedule
