// The collectives of communicators over several nodes, one file each. Arguments have been checked,
// in place has been resolved (send == receive), and every rank makes the same call.
//
// Each is called outside of Nodes::run(): it decides from what all ranks share whether the nodes
// serve the call, then runs it in there, or leaves it to MPI (through_mpi.hpp).
#pragma once

#include "collectives/algorithms.hpp"
#include "collectives/nodes/nodes.hpp"

namespace ropewalk::collectives::nodes {

// reduce.cc: root -1 means that every rank gets the result.
void reduce(Nodes&, const void* send, void* receive, std::size_t count, const Operation&, int root);

void reduce_scatter(Nodes&, const void* send, void* receive, const std::size_t* counts,
                    const Operation&);

// Movements, a file each. Blocks as in collectives/backend.hpp.
void barrier(Nodes&);
void broadcast(Nodes&, void* data, std::size_t bytes, int root);
void allgather(Nodes&, const void* send, void* receive, const Blocks&);
void gather(Nodes&, const void* send, std::size_t bytes, void* receive, const Blocks&, int root);
void scatter(Nodes&, const void* send, const Blocks&, void* receive, std::size_t bytes, int root);
void alltoall(Nodes&, const void* send, void* receive, std::size_t bytes_each);
void alltoallv(Nodes&, const void* send, const Blocks& sends, void* receive,
               const Blocks& receives);

// ---- of this node's ranks, alone or not

// Elements of this node's ranks combined in their order, for the rank at a place; others pass null
// for `receive`.
void reduce_inside(Nodes&, const void* send, void* receive, std::size_t count, const Operation&,
                   int place);
void broadcast_inside(Nodes&, void* data, std::size_t bytes, int place);

// ---- among one rank of each node: ends[v] is that of node v, this rank is ends[own node]

// doubling.cc: recursive doubling; partial[v] are combined in the order of nodes. For vectors so
// short that the number of messages counts and not their bytes.
void doubling_allreduce(Nodes&, std::span<const int> ends, void* data, std::size_t count,
                        const Operation&);
// The same among all ranks, in their order; and from the root to all ranks by a binomial tree. For
// the shortest, where a step inside a node costs as much as a message.
void flat_allreduce(Nodes&, void* data, std::size_t count, const Operation&);
void flat_broadcast(Nodes&, void* data, std::size_t bytes, int root);
// A binomial tree whose root is the end of node `root`.
void tree_reduce(Nodes&, std::span<const int> ends, void* data, std::size_t count, const Operation&,
                 int root);

}  // namespace ropewalk::collectives::nodes
