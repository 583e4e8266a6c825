// How many ranks of the job run on this node, by what its launcher has put in the environment.
#pragma once

#include <optional>
#include <string>

namespace ropewalk::topology {

// Returns what Open MPI, Hydra (MPICH, Intel MPI), MVAPICH, PMI or Slurm says; nothing where none
// of them does. It is for sizes that are better guessed than not: nothing that ranks do together
// depends on it.
std::optional<int> told_node_ranks();

// Returns the same. Where no launcher says, it returns the ranks of the whole job, or as many as
// there are CPUs, whichever is less; and 1 in a process that nothing shows to be a rank.
int expected_node_ranks();

// Returns the largest number in Slurm's list of nodes, such as "4(x2),3".
std::optional<int> most_tasks(const std::string& list);

}  // namespace ropewalk::topology
