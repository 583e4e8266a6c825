// Which ranks of a communicator share a node: a number a rank, from the identities that the kernel
// gives, or from ROPEWALK_NODES, which lets tests have several nodes on one machine.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ropewalk::node {

// Returns the node that ROPEWALK_NODES puts a rank of MPI_COMM_WORLD on; none where it is unset or
// "auto". "2,1,3"    the first 2 ranks, the next one, the next 3, and again from the start
// "round:3"  rank r on node r mod 3 Error(argument) for any other text.
std::optional<int> pretended_node(const char* text, int world_rank);

// os::node_identity() of this process, and the pretended node where there is one: equal exactly
// where ranks may share memory. MPI must be initialised where ROPEWALK_NODES is set.
std::string node_name();

// Nodes by their lowest rank: the same number for the same name.
std::vector<int> number_nodes(std::span<const std::string> names);

}  // namespace ropewalk::node
