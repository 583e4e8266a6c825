// Compiled with OpenMP where the compiler has it; see openmp.hpp.
#include "overlap/openmp.hpp"

#if defined(_OPENMP)
#include <omp.h>
#endif

namespace ropewalk::bench {

#if defined(_OPENMP)
bool has_openmp() { return true; }

// OpenMP may give fewer threads than it is asked for; then some do the work of several.
void in_parallel_region(int threads, const std::function<void(int)>& work) {
#pragma omp parallel num_threads(threads)
  for (int i = omp_get_thread_num(); i < threads; i += omp_get_num_threads()) work(i);
}
#else
bool has_openmp() { return false; }

void in_parallel_region(int threads, const std::function<void(int)>& work) {
  for (int i = 0; i < threads; ++i) work(i);
}
#endif

}  // namespace ropewalk::bench
