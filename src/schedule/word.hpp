// The words that workers of a loop share, and the seam where the model test looks in: tests/model
// puts a header of this name before this one, whose words report every access.
#pragma once

#include <atomic>
#include <cstdint>

namespace ropewalk::schedule {

// Read and written by any worker.
using Word = std::atomic<std::uint64_t>;

}  // namespace ropewalk::schedule
