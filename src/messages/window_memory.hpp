// A rank's own part of a window: what other ranks read and write, wherever they are.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "node/control.hpp"

namespace ropewalk::messages {

// This counter is raised by several ranks, and has lines of its own.
struct alignas(node::flag_stride) WindowSignal {
  std::atomic<std::uint64_t> count;
};

struct WindowMemory {
  std::byte* data = nullptr;
  WindowSignal* signals = nullptr;
};

}  // namespace ropewalk::messages
