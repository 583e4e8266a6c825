// The MPI that a program of this folder is compiled against, and nothing of ropewalk: what runs
// here is what a user has built long ago. MPI_X may be the drop-in's, PMPI_X is always MPI's own.
#pragma once

#ifdef ROPEWALK_TEST_ABI
#include <mpi_abi.h>
#else
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
#endif

#include <execinfo.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace test {

// What is under way, for the message of a hang.
inline std::array<char, 512> under_way{};

inline void now(const std::string& what) {
  std::snprintf(under_way.data(), under_way.size(), "%s\n", what.c_str());
}

inline void say_and_leave(int) {
  const char text[] = "too slow, or hangs in ";
  (void)!write(STDERR_FILENO, text, sizeof text - 1);
  (void)!write(STDERR_FILENO, under_way.data(), std::strlen(under_way.data()));
  std::array<void*, 64> frames{};
  backtrace_symbols_fd(frames.data(), backtrace(frames.data(), 64), STDERR_FILENO);
  _exit(1);
}

inline void end_after(unsigned seconds) {
  std::signal(SIGALRM, &say_and_leave);
  alarm(seconds);
}

inline int failures = 0;

inline void fail(const std::string& text) {
  int rank = -1;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::fprintf(stderr, "rank %d: %s\n", rank, text.c_str());
  ++failures;
}

inline void expect(bool holds, const std::string& text) {
  if (!holds) fail(text);
}

// What cannot be tried here, for the same reason on all ranks: CTest lists the test as skipped,
// unless something else has failed.
inline bool any_skipped = false;
inline void skip(const std::string& why) {
  if (!any_skipped) std::printf("skipped: %s\n", why.c_str());
  any_skipped = true;
}

// Whether any rank has failed; of MPI_COMM_WORLD.
inline bool any_failure() {
  int any = failures;
  PMPI_Allreduce(&failures, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  return any != 0;
}

// What main returns: 0, 1 on every rank where any has failed, or 77 where something was skipped.
// Before MPI_Finalize.
inline int status() { return any_failure() ? 1 : any_skipped ? 77 : 0; }

inline int rank_of(MPI_Comm comm) {
  int rank = 0;
  PMPI_Comm_rank(comm, &rank);
  return rank;
}

inline int size_of(MPI_Comm comm) {
  int size = 0;
  PMPI_Comm_size(comm, &size);
  return size;
}

}  // namespace test
