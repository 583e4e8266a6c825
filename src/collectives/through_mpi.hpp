// Collectives that are MPI's own: all of communicators that ropewalk cannot serve, some over nodes.
#pragma once

#include "collectives/state.hpp"

namespace ropewalk::collectives {

// Arguments have been checked; in place is send == receive. Byte counts; see NodeCommunicator.
void mpi_reduce(NodeCommunicator::State&, const void* send, void* receive, std::size_t count,
                const Operation&, int root);
void mpi_scan(NodeCommunicator::State&, const void* send, void* receive, std::size_t count,
              const Operation&, bool exclusive);
void mpi_reduce_scatter(NodeCommunicator::State&, const void* send, void* receive,
                        const std::size_t* counts, const Operation&);
void mpi_barrier(NodeCommunicator::State&);
void mpi_broadcast(NodeCommunicator::State&, void* data, std::size_t bytes, int root);
void mpi_allgatherv(NodeCommunicator::State&, const void* send, std::size_t bytes, void* receive,
                    const std::size_t* counts, const std::size_t* displacements);
void mpi_gatherv(NodeCommunicator::State&, const void* send, std::size_t bytes, void* receive,
                 const std::size_t* counts, const std::size_t* displacements, int root);
void mpi_scatterv(NodeCommunicator::State&, const void* send, const std::size_t* counts,
                  const std::size_t* displacements, void* receive, std::size_t bytes, int root);
// Equal blocks behind each other, which MPI has faster ways for.
void mpi_allgather(NodeCommunicator::State&, const void* send, std::size_t bytes, void* receive);
void mpi_gather(NodeCommunicator::State&, const void* send, std::size_t bytes, void* receive,
                int root);
void mpi_scatter(NodeCommunicator::State&, const void* send, void* receive, std::size_t bytes,
                 int root);
void mpi_alltoall(NodeCommunicator::State&, const void* send, void* receive, std::size_t bytes);
void mpi_alltoallv(NodeCommunicator::State&, const void* send, const std::size_t* send_counts,
                   const std::size_t* send_displacements, void* receive,
                   const std::size_t* receive_counts, const std::size_t* receive_displacements);

}  // namespace ropewalk::collectives
