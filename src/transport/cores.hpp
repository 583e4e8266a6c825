// The cores of this process, and where comm threads go on them.
#pragma once

#include <span>
#include <vector>

namespace ropewalk::transport {

// Every core that some thread of this process may use. Not the caller's alone: an OpenMP runtime
// binds the caller to one core, and the comm threads would end up there with it.
std::vector<int> process_cores();

// The core of a lane, or all cores where there are too few to give each lane of each rank its own
// (there the kernel balances better). Counted from the end of the list: compute threads are
// usually placed from its beginning.
std::vector<int> cores_of_lane(std::span<const int> cores, int lane, int lanes, int position,
                               int neighbours);

void run_this_thread_on(const std::vector<int>& cores) noexcept;

// Now; the kernel may move it again, to where it was allowed before. Does nothing where the core
// is not.
void move_this_thread_to(int core) noexcept;

// Rises in every child of a fork: threads made under an earlier number are not there any more.
unsigned fork_generation() noexcept;

}  // namespace ropewalk::transport
