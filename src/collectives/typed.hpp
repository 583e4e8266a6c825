// The collectives on elements of any type and with any operation, as the C interface offers them:
// types and operations resolved, counts turned into bytes, gaps packed away.
//
// What goes wrong on one rank before the call begins is an error on every rank. Calls run on the
// thread that calls these; see Collectives for the arguments, which count elements here.
#pragma once

#include "collectives/algorithms.hpp"
#include "collectives/datatypes.hpp"
#include "collectives/state.hpp"

namespace ropewalk::collectives::typed {

struct Reduction {
  Operation operation;
  Elements elements;  // of packed operations
};

// What stands before every call: the types and operations behind the numbers.
Elements elements_of(Collectives&, rw_type);
Reduction reduction_of(Collectives&, rw_type, rw_op);

void allreduce(Collectives&, const void* send, void* receive, std::size_t count, const Reduction&);
void reduce(Collectives&, const void* send, void* receive, std::size_t count, const Reduction&,
            int root);
void scan(Collectives&, const void* send, void* receive, std::size_t count, const Reduction&,
          bool exclusive);
void reduce_scatter(Collectives&, const void* send, void* receive, const std::size_t* counts,
                    const Reduction&);
void reduce_scatter_block(Collectives&, const void* send, void* receive, std::size_t count,
                          const Reduction&);

// The first is a buffer of one block of elements, the second has a block for each rank (in
// elements, as in the forms of MPI that end in v). A side in which a rank takes no part is empty,
// and its type is not looked at.
struct TypedBuffer {
  const void* data;
  std::size_t count;
  const Elements& elements;
};
struct TypedBuffers {
  const void* data;
  const std::size_t* counts;
  const std::size_t* displacements;
  const Elements& elements;
};

// The two sides of a movement may have types of their own, for the same bytes. Counts are those of
// MPI: in allgather and gather, `receive` has the count of one rank's block, as `send` in scatter.
void broadcast(Collectives&, const TypedBuffer&, int root);
void allgather(Collectives&, const TypedBuffer& send, const TypedBuffer& receive);
void allgatherv(Collectives&, const TypedBuffer& send, const TypedBuffers& receive);
void gather(Collectives&, const TypedBuffer& send, const TypedBuffer& receive, int root);
void gatherv(Collectives&, const TypedBuffer& send, const TypedBuffers& receive, int root);
void scatter(Collectives&, const TypedBuffer& send, const TypedBuffer& receive, int root);
void scatterv(Collectives&, const TypedBuffers& send, const TypedBuffer& receive, int root);
void alltoall(Collectives&, const TypedBuffer& send, const TypedBuffer& receive);
void alltoallv(Collectives&, const TypedBuffers& send, const TypedBuffers& receive);
// There is a block for each neighbour, see exchange_neighbours(). It works only where ranks are
// joined directly, as the next ones.
void neighbours(Collectives&, const NeighbourRanks&, const TypedBuffers& send,
                const TypedBuffers& receive);

// Each part has a type of its own. In place, `sends` are the receives.
using Parts = std::span<const TypedPart>;
void neighbours(Collectives&, const NeighbourRanks&, Parts sends, Parts receives);
void alltoallw(Collectives&, Parts sends, Parts receives, bool in_place);
// Whether ropewalk does these at least as fast as MPI; a fact that all ranks share.
bool serves_neighbours(Collectives&);
bool serves_alltoallw(Collectives&);

}  // namespace ropewalk::collectives::typed
