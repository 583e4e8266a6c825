// Ranks that are processes forked here, since every launcher of MPI kills the others when one dies.
// The little MPI they need to meet is shared memory.
#pragma once

#include <sys/types.h>

#include <functional>
#include <vector>

namespace ropewalk::test {

constexpr int most_forked_ranks = 40;

// What `live` returns in each rank; -1 for one that a signal has ended. A rank that hangs dies of
// its alarm. The caller has no threads and nothing of ropewalk that has state. A communicator is
// any handle: all ranks, whatever it is.
std::vector<int> run_forked(int ranks, const std::function<int()>& live);

// Within `live`:
int forked_rank();
int forked_ranks();
pid_t process_of(int rank);
// Returns when so many ranks have come here; each rank comes once.
void meet(int count);

}  // namespace ropewalk::test
