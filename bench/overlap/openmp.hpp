// Parallel regions of OpenMP, for the way of programs that begin one for each phase.
#pragma once

#include <functional>

namespace ropewalk::bench {

// Whether the compiler of this program had OpenMP.
bool has_openmp();
// Calls work(0) to work(threads - 1), each by a thread of one parallel region.
void in_parallel_region(int threads, const std::function<void(int)>& work);

}  // namespace ropewalk::bench
