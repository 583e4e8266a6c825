// How many ranks of the job run on this node, by what its launcher has put in the environment.
#pragma once

#include <optional>
#include <string>

namespace ropewalk::topology {

// From Open MPI, Hydra (MPICH, Intel MPI), MVAPICH, PMI or Slurm; nothing where none of them says.
// For sizes that are better guessed than not: nothing that ranks do together depends on it.
std::optional<int> told_node_ranks();

// The same, and where no launcher says: the ranks of the whole job, or as many as there are CPUs,
// whichever is less; 1 in a process that nothing shows to be a rank.
int expected_node_ranks();

// Of the largest number in Slurm's list of nodes, as "4(x2),3".
std::optional<int> most_tasks(const std::string& list);

}  // namespace ropewalk::topology
