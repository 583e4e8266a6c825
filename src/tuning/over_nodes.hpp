// Which way a collective over several nodes goes. Pure: it follows from the values of rows, from
// the size of the call and from the shape of the communicator, which all its ranks know alike.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tuning/on_node.hpp"
#include "tuning/profile.hpp"

namespace ropewalk::tuning {

// Returns the values for collectives over nodes: the profile's, else the defaults. Of the facts,
// those about the MPI count.
Values values_over_nodes(const Facts&);

struct Shape {
  int nodes = 2;
  int least = 1;                  // ranks on the node that has the fewest
  int most = 1;                   // and on the one that has the most
  bool crowded = false;           // ranks of some node share cores
  bool serves_all_sizes = false;  // ROPEWALK_MOVEMENTS=nodes
  bool without_mpi = false;       // nothing can be left to MPI
};

// `whole` is the MPI's own call on the whole communicator, `flat` is doubling among all ranks,
// `doubling` goes through one rank a node; the others take a vector in chunks. To a root, `flat` is
// a binomial tree of all ranks and `ring` a chain.
enum class Algorithm : std::uint8_t { whole, flat, doubling, halving, ring, mpi };

struct ReductionCall {
  std::size_t bytes;
  bool rooted = false;                // one rank gets the result
  int wish = -1;                      // ROPEWALK_ALLREDUCE: an Algorithm; -1: none
  std::size_t longest_message_bytes;  // that all ranks have agreed on
};
struct ReductionChoice {
  Algorithm algorithm;
  int slices;               // the vector is dealt to so many leaders a node
  std::size_t chunk_bytes;  // at most, of a slice
};
ReductionChoice choose_reduction(const Values&, const Shape&, const ReductionCall&);
int most_slices(const Values&, int most_ranks);  // of any choice

enum class BroadcastWay : std::uint8_t { mpi, flat, tree, chain };
BroadcastWay choose_broadcast(const Values&, const Shape&, std::size_t bytes);
std::size_t broadcast_chunk(const Values&, std::size_t slice_bytes);

enum class AllgatherWay : std::uint8_t { mpi, leaders, slices };
AllgatherWay choose_allgather(const Values&, const Shape&, std::size_t bytes_of_all);

// Tells whether the blocks that the ranks of one node have for those of another go in one message;
// in alltoall, where they are `bytes` together.
bool sends_together(const Values&, std::size_t bytes, std::size_t senders, std::size_t receivers);
// Returns the chunk of a block of reduce_scatter, between two messages to or from each of so many
// other nodes.
std::size_t reduce_scatter_chunk(const Values&, std::size_t other_nodes);

// What ROPEWALK_ALLREDUCE asks for, an Algorithm; -1: nothing.
int wished_algorithm();
const char* name(Algorithm);

// `bytes` is as in reason_on_node(); each node has as many ranks.
void reason_over_nodes(Reasons&, Collective, std::size_t bytes, const Situation&);

// Where every node has one rank there is nothing to share out, whatever the size.
bool is_served(const Shape&, bool size_is);
// Tells whether a root talks to each node itself.
bool has_few_nodes(const Values&, const Shape&);

// Whether the blocks of a gather or scatter, all equal, go straight between root and ranks, which
// are no more than the nodes that a root talks to.
bool rooted_goes_flat(const Values&, const Shape&, std::size_t block_bytes);

// Whether ropewalk serves these; MPI does otherwise.
bool serves_barrier(const Shape&);
bool serves_reduce_scatter(const Values&, const Shape&, std::size_t bytes_of_all);
bool serves_alltoall(const Values&, const Shape&, std::size_t block_bytes);
bool serves_gather(const Values&, const Shape&, std::size_t block_bytes);
bool serves_scatter(const Values&, const Shape&, std::size_t block_bytes);
// The same for forms whose sizes no rank knows of all ranks, so that sizes cannot count. With
// `int_counts` the MPI's own call would begin with an agreement of all ranks, which costs more than
// that call can be faster.
bool serves_gatherv(const Values&, const Shape&, bool int_counts);
bool serves_scatterv(const Values&, const Shape&, bool int_counts);
bool serves_alltoallv(const Shape&, bool int_counts);
// These are not served with Open MPI: a message alone takes a fifth to two fifths longer than in
// its own calls, and ranks that share cores wait a time slice more (docs/explanation/drop-in.md).
bool serves_neighbours(const Shape&, bool openmpi);
bool serves_alltoallw(const Shape&, bool openmpi);

}  // namespace ropewalk::tuning
