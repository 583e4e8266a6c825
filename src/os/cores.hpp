// The cores of this process, and which of them a thread runs on.
#pragma once

#include <vector>

namespace ropewalk::os {

// Returns every core that some thread of this process may use. It is not the caller's alone,
// because an OpenMP runtime binds the caller to one core, and a thread that we start would end up
// there with it.
std::vector<int> process_cores();

// Does nothing where `cores` is empty.
void run_this_thread_on(const std::vector<int>& cores) noexcept;

// Moves the thread now; the kernel may move it again, to where it was allowed before. Does nothing
// where the core is not allowed.
void move_this_thread_to(int core) noexcept;

}  // namespace ropewalk::os
