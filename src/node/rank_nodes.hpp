// Which node each rank of a communicator is on, and which cache domain of it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "mpi/mpi.hpp"

namespace ropewalk::node {

// Collective. Returns the number of each rank's node. Throws Error(argument) on every rank where
// ROPEWALK_NODES of one is malformed, or where a setting that must be the same on all ranks is not.
std::vector<int> nodes_of_ranks(mpi::Comm comm);

// Numbers the cache domains of all nodes, from 0, node by node: `own` has what own_domain() says on
// each rank, and `nodes` its node. Ranks of a node of which one has no domain are in one.
std::vector<int> number_domains(std::span<const std::int64_t> own, std::span<const int> nodes);

// Collective, with what nodes_of_ranks() returned. Returns the number of each rank's cache domain.
// Throws Error(argument) on every rank where ROPEWALK_DOMAINS is malformed.
std::vector<int> domains_of_ranks(mpi::Comm comm, std::span<const int> nodes);

}  // namespace ropewalk::node
