// The collectives of communicators over several nodes, one file each. Arguments have been checked,
// in place has been resolved (send == receive), and every rank makes the same call.
//
// Each is called outside of Nodes::run(): it decides, from facts that all ranks share, whether the
// nodes serve the call. Then it either runs the call inside of Nodes::run(), or leaves it to MPI
// (through_mpi.hpp).
#pragma once

#include "collectives/algorithms.hpp"
#include "collectives/nodes/nodes.hpp"

namespace ropewalk::collectives::nodes {

// reduce.cc: root -1 means that every rank gets the result.
void reduce(Nodes&, const void* send, void* receive, std::size_t count, const Operation&, int root);

void reduce_scatter(Nodes&, const void* send, void* receive, const std::size_t* counts,
                    const Operation&);

// scan.cc
void scan(Nodes&, const void* send, void* receive, std::size_t count, const Operation&,
          bool exclusive);

// The movements have a file each. Blocks are as in collectives/backend.hpp.
void barrier(Nodes&);
void broadcast(Nodes&, void* data, std::size_t bytes, int root);
void allgather(Nodes&, const void* send, void* receive, const Blocks&);
void gather(Nodes&, const void* send, std::size_t bytes, void* receive, const Blocks&, int root);
void scatter(Nodes&, const void* send, const Blocks&, void* receive, std::size_t bytes, int root);
void alltoall(Nodes&, const void* send, void* receive, std::size_t bytes_each);
void alltoallv(Nodes&, const void* send, const Blocks& sends, void* receive,
               const Blocks& receives);

// These are not left to MPI here: who calls them asks serves_neighbours() and serves_alltoallw()
// (tuning/over_nodes.hpp) first.
void exchange_neighbours(Nodes&, const NeighbourRanks&, const void* send, const Blocks& sends,
                         void* receive, const Blocks& receives);
void exchange_neighbours(Nodes&, const NeighbourRanks&, std::span<const TypedPart> sends,
                         std::span<const TypedPart> receives);
void alltoallw(Nodes&, std::span<const TypedPart> sends, std::span<const TypedPart> receives,
               bool in_place);

// broadcast.cc: among this node's ranks, where it has more than one.
void broadcast_inside(Nodes&, void* data, std::size_t bytes, int place);

// ---- flat_rooted.cc: messages straight between ranks, for small blocks

void flat_reduce(Nodes&, const void* send, void* receive, std::size_t count, const Operation&,
                 int root);
void flat_gather(Nodes&, const void* send, std::size_t bytes, void* receive, const Blocks&,
                 int root);
void flat_scatter(Nodes&, const void* send, const Blocks&, void* receive, std::size_t bytes,
                  int root);

// ---- doubling.cc: among one leader of each node, this rank among them: leaders[v] is node v's

// Recursive doubling combines the nodes' parts in the order of nodes. It is for vectors so short
// that the number of messages counts and not their bytes.
void doubling_allreduce(Nodes&, std::span<const int> leaders, void* data, std::size_t count,
                        const Operation&);
// Among all ranks, in their order; and from the root to all ranks by a binomial tree. For the
// shortest vectors, where a step inside a node costs as much as a message.
void flat_allreduce(Nodes&, void* data, std::size_t count, const Operation&);
void flat_broadcast(Nodes&, void* data, std::size_t bytes, int root);
// The messages go through a binomial tree whose root is the leader of node `root`.
void tree_reduce(Nodes&, std::span<const int> leaders, void* data, std::size_t count,
                 const Operation&, int root);

}  // namespace ropewalk::collectives::nodes
