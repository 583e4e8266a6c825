// What a rank's ended teams leave behind until nobody looks at it any more.
//
// A rank ends its team without waiting: communicators are freed in whatever order a program's ranks
// come to it, and a free that waits could deadlock where MPI's does not.
#pragma once

#include <array>
#include <cstdint>

#include "node/control.hpp"

namespace ropewalk::node {

// Memory of the process's arena; null is allowed for each part.
struct Remains {
  Control* control;
  std::uint32_t others;  // ranks that must have left before it is given back
  std::array<void*, 3> areas;
};

void leave_behind(const Remains&) noexcept;
// Gives back what all others have left. Called by the two ends of every team; from any thread.
void sweep_remains() noexcept;

}  // namespace ropewalk::node
