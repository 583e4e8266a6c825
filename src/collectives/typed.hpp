// The collectives on elements of any type and with any operation, as the C interface offers them:
// types and operations resolved, counts turned into bytes, gaps packed away.
//
// What goes wrong on one rank before the call begins is an error on every rank. Calls run on the
// thread that calls these; see NodeCommunicator for the arguments, which count elements here.
#pragma once

#include "collectives/datatypes.hpp"
#include "collectives/state.hpp"

namespace ropewalk::collectives::typed {

struct Reduction {
  Operation operation;
  Elements elements;  // of packed operations
};

// What stands before every call: the types and operations behind the numbers.
Elements elements_of(NodeCommunicator&, rw_type);
Reduction reduction_of(NodeCommunicator&, rw_type, rw_op);

// root -1: every rank gets the result. reduce_to refuses what is no rank.
void reduce(NodeCommunicator&, const void* send, void* receive, std::size_t count, const Reduction&,
            int root);
void reduce_to(NodeCommunicator&, const void* send, void* receive, std::size_t count,
               const Reduction&, int root);
void scan(NodeCommunicator&, const void* send, void* receive, std::size_t count, const Reduction&,
          bool exclusive);
void reduce_scatter(NodeCommunicator&, const void* send, void* receive, const std::size_t* counts,
                    const Reduction&);
void reduce_scatter_block(NodeCommunicator&, const void* send, void* receive, std::size_t count,
                          const Reduction&);

void broadcast(NodeCommunicator&, void* data, std::size_t count, const Elements&, int root);
void allgather(NodeCommunicator&, const void* send, void* receive, std::size_t count,
               const Elements&);
void allgatherv(NodeCommunicator&, const void* send, std::size_t send_count, void* receive,
                const std::size_t* counts, const std::size_t* displacements, const Elements&);
void gather(NodeCommunicator&, const void* send, void* receive, std::size_t count, const Elements&,
            int root);
void gatherv(NodeCommunicator&, const void* send, std::size_t send_count, void* receive,
             const std::size_t* counts, const std::size_t* displacements, const Elements&,
             int root);
void scatter(NodeCommunicator&, const void* send, void* receive, std::size_t count, const Elements&,
             int root);
void scatterv(NodeCommunicator&, const void* send, const std::size_t* counts,
              const std::size_t* displacements, void* receive, std::size_t receive_count,
              const Elements&, int root);
void alltoall(NodeCommunicator&, const void* send, void* receive, std::size_t count,
              const Elements&);
void alltoallv(NodeCommunicator&, const void* send, const std::size_t* send_counts,
               const std::size_t* send_displacements, void* receive,
               const std::size_t* receive_counts, const std::size_t* receive_displacements,
               const Elements&);

}  // namespace ropewalk::collectives::typed
