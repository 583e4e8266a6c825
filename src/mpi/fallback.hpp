// MPI's own collectives with 64-bit counts, for every call that ropewalk does not serve itself.
//
// Where the library has MPI_*_c they are called. Elsewhere (Open MPI 4 and 5) counts that fit an
// int go to the plain function; larger ones become one derived type (movements), pieces
// (reductions), or messages (the forms ending in v). All ranks must come to the same decision. It
// follows from the count of a reduction, which is the same everywhere, from the bytes of an
// allgatherv, or, in the other forms ending in v, from an agreement of all ranks, which costs one
// small allreduce.
//
// Arguments are those of MPI; counts and displacements are in elements. `in_place()` is allowed
// where MPI allows it. Intracommunicators only, see is_inter().
//
// With a waiter the calls are nonblocking ones, on a communicator that is the caller's own: MPI's
// collectives and messages of tag 0 are theirs there. Its wait may throw. Then the requests of the
// calls, their memory and the caller's buffers are left to MPI.
#pragma once

#include <cstddef>

#include "mpi/mpi.hpp"
#include "mpi/waiter.hpp"

namespace ropewalk::mpi::fallback {

void allreduce(const void* send, void* receive, std::size_t count, Datatype, Op, Comm,
               Waiter* = nullptr);
// The count fits an int; the caller tests the request, or leaves it.
Request start_allreduce(const void* send, void* receive, std::size_t count, Datatype, Op, Comm);
void reduce(const void* send, void* receive, std::size_t count, Datatype, Op, int root, Comm,
            Waiter* = nullptr);
void scan(const void* send, void* receive, std::size_t count, Datatype, Op, Comm,
          Waiter* = nullptr);
void exscan(const void* send, void* receive, std::size_t count, Datatype, Op, Comm,
            Waiter* = nullptr);
void reduce_scatter(const void* send, void* receive, const std::size_t* counts, Datatype, Op, Comm,
                    Waiter* = nullptr);
void reduce_scatter_block(const void* send, void* receive, std::size_t count, Datatype, Op, Comm,
                          Waiter* = nullptr);

void barrier(Comm, Waiter* = nullptr);
void broadcast(void* data, std::size_t count, Datatype, int root, Comm, Waiter* = nullptr);
void allgather(const void* send, std::size_t send_count, Datatype send_type, void* receive,
               std::size_t receive_count, Datatype receive_type, Comm, Waiter* = nullptr);
void gather(const void* send, std::size_t send_count, Datatype send_type, void* receive,
            std::size_t receive_count, Datatype receive_type, int root, Comm, Waiter* = nullptr);
void scatter(const void* send, std::size_t send_count, Datatype send_type, void* receive,
             std::size_t receive_count, Datatype receive_type, int root, Comm, Waiter* = nullptr);
void alltoall(const void* send, std::size_t send_count, Datatype send_type, void* receive,
              std::size_t receive_count, Datatype receive_type, Comm, Waiter* = nullptr);

// Whether gatherv, scatterv and alltoallv begin with that allreduce: the same on all ranks.
bool counts_need_agreement();

void allgatherv(const void* send, std::size_t send_count, Datatype send_type, void* receive,
                const std::size_t* counts, const std::size_t* displacements, Datatype receive_type,
                Comm, Waiter* = nullptr);
void gatherv(const void* send, std::size_t send_count, Datatype send_type, void* receive,
             const std::size_t* counts, const std::size_t* displacements, Datatype receive_type,
             int root, Comm, Waiter* = nullptr);
void scatterv(const void* send, const std::size_t* counts, const std::size_t* displacements,
              Datatype send_type, void* receive, std::size_t receive_count, Datatype receive_type,
              int root, Comm, Waiter* = nullptr);
void alltoallv(const void* send, const std::size_t* send_counts,
               const std::size_t* send_displacements, Datatype send_type, void* receive,
               const std::size_t* counts, const std::size_t* displacements, Datatype receive_type,
               Comm, Waiter* = nullptr);

}  // namespace ropewalk::mpi::fallback
