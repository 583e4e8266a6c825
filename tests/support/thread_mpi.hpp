// An MPI whose ranks are threads of this process: every room above src/mpi runs on it unchanged,
// under the address and thread sanitizers too.
//
//   run_ranks(4, [](int rank) { mpi::barrier(mpi::comm_world()); ... });
//
// It has the handles of the MPI-5 standard ABI and none of its functions is fast: one lock guards
// all. What it checks on the way: truncation, collectives that do not match, requests and
// communicators left over, and deadlock (every thread that has a rank is blocked in MPI; no
// timing).
#pragma once

#include <cstddef>
#include <functional>

#include "mpi/mpi.hpp"

namespace ropewalk::test {

struct RunOptions {
  mpi::ThreadLevel level = mpi::ThreadLevel::multiple;  // what MPI_Query_thread answers
  std::size_t eager_bytes = 1024;  // longer messages complete at the sender when received
  int ranks_per_node = 0;          // how MPI_COMM_TYPE_SHARED splits; 0: one node
  bool large_counts = true;        // false: an MPI without MPI_*_c functions, as Open MPI
  int tag_bound = 0x7fffffff;      // MPI_TAG_UB
  bool check_leaks = true;         // requests and communicators must be gone at the end
  // MPI_Comm_free waits for all ranks, as the standard allows. In the MPIs there are it does not.
  bool frees_wait = true;
  // Called as ("MPI_Send", rank) at the start of every call; what it returns, unless 0, is the
  // code with which that call fails. It must not call MPI and must be thread-safe.
  std::function<int(const char* function, int rank)> fail = {};
};

// Runs body(rank) on one thread a rank, joins them, and rethrows the first exception. A rank that
// throws, or fails a GoogleTest assertion fatally, ends the run: calls in which others are or will
// be blocked fail with Error(mpi). One run at a time. At the end each rank's attributes on
// MPI_COMM_SELF and MPI_COMM_WORLD are deleted, as MPI_Finalize does.
void run_ranks(int ranks, const std::function<void(int rank)>& body, const RunOptions& = {});

// Communicators of this run that are not freed, MPI_COMM_WORLD and MPI_COMM_SELF apart.
std::size_t live_communicators();

}  // namespace ropewalk::test
