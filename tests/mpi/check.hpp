// Checks of programs that run under a real mpiexec, where GoogleTest's output would interleave.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

#include "mpi/mpi.hpp"

namespace ropewalk::test {

// Returns one line on stderr for what does not hold; exit_code() is 1 from then on.
inline int& failures() {
  static int count = 0;
  return count;
}

inline void expect(bool holds, const std::string& what) {
  if (holds) return;
  ++failures();
  std::fprintf(stderr, "rank %d: %s\n", mpi::rank(mpi::comm_world()), what.c_str());
}

template <class A, class B>
void expect_equal(const A& found, const B& expected, const std::string& what) {
  expect(found == expected,
         what + ": found " + std::to_string(found) + ", expected " + std::to_string(expected));
}

inline int exit_code() { return failures() == 0 ? EXIT_SUCCESS : EXIT_FAILURE; }

}  // namespace ropewalk::test
