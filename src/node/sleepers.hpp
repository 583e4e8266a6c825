// The word by which ranks that wait for flags are woken, in memory that they share.
#pragma once

#include <atomic>
#include <cstdint>

namespace ropewalk::node {

// All zeros at first. It is used only by ranks that go to sleep and by ranks that wake them.
struct Sleepers {
  std::atomic<std::uint32_t> count;
  std::atomic<std::uint32_t> wake;
};

}  // namespace ropewalk::node
