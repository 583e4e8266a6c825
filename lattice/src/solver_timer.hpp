// Measures the seconds that a solution took, and those between two lines of progress.
#pragma once

#include <chrono>

namespace ropewalk::lattice::detail {

class SolverTimer {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace ropewalk::lattice::detail
