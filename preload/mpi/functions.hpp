// The MPI functions that the drop-in replaces, and the next function of each name.
//
// Every entry point MPI_X of this library is one jump through a slot. A slot leads to the function
// of the same name in `serve`, or straight to the next MPI_X of the process: a tool's, or MPI's
// own.
#pragma once

#include "mpi/functions.hpp"

namespace ropewalk::preload {

using mpi::Count;
using mpi::Word;  // a handle, whatever its C type: see mpi/functions.hpp

// An array of handles is passed by its address: of ints or of words, as the MPI has them.
//
// F(name, parameters): those of MPI 3, blocking, making windows (their PMPI names are ours as well,
// as the ranks of a window agree on it), nonblocking, persistent, and those of MPI 4 with 64-bit
// counts.
// clang-format off
#define ROPEWALK_FUNCTIONS(F)                                                                    \
  F(Finalize, ())                                                                                \
  F(Alloc_mem, (Count, Word, void*))                                                             \
  F(Free_mem, (void*))                                                                           \
  F(Comm_free, (void*))                                                                          \
  F(Comm_disconnect, (void*))                                                                    \
  F(Barrier, (Word))                                                                             \
  F(Bcast, (void*, int, Word, int, Word))                                                        \
  F(Reduce, (const void*, void*, int, Word, Word, int, Word))                                    \
  F(Allreduce, (const void*, void*, int, Word, Word, Word))                                      \
  F(Scan, (const void*, void*, int, Word, Word, Word))                                           \
  F(Exscan, (const void*, void*, int, Word, Word, Word))                                         \
  F(Reduce_scatter, (const void*, void*, const int*, Word, Word, Word))                          \
  F(Reduce_scatter_block, (const void*, void*, int, Word, Word, Word))                           \
  F(Allgather, (const void*, int, Word, void*, int, Word, Word))                                 \
  F(Allgatherv, (const void*, int, Word, void*, const int*, const int*, Word, Word))             \
  F(Gather, (const void*, int, Word, void*, int, Word, int, Word))                               \
  F(Gatherv, (const void*, int, Word, void*, const int*, const int*, Word, int, Word))           \
  F(Scatter, (const void*, int, Word, void*, int, Word, int, Word))                              \
  F(Scatterv, (const void*, const int*, const int*, Word, void*, int, Word, int, Word))          \
  F(Alltoall, (const void*, int, Word, void*, int, Word, Word))                                  \
  F(Alltoallv, (const void*, const int*, const int*, Word, void*, const int*, const int*, Word,  \
                Word))                                                                           \
  F(Alltoallw, (const void*, const int*, const int*, const void*, void*, const int*, const int*,  \
                const void*, Word))                                                               \
  F(Neighbor_allgather, (const void*, int, Word, void*, int, Word, Word))                        \
  F(Neighbor_allgatherv, (const void*, int, Word, void*, const int*, const int*, Word, Word))    \
  F(Neighbor_alltoall, (const void*, int, Word, void*, int, Word, Word))                         \
  F(Neighbor_alltoallv, (const void*, const int*, const int*, Word, void*, const int*,           \
                         const int*, Word, Word))                                                \
  F(Neighbor_alltoallw, (const void*, const int*, const Count*, const void*, void*, const int*,   \
                         const Count*, const void*, Word))
#define ROPEWALK_WINDOW_FUNCTIONS(F)                                                             \
  F(Win_create, (void*, Count, int, Word, Word, void*))                                          \
  F(Win_allocate, (Count, int, Word, Word, void*, void*))                                        \
  F(Win_allocate_shared, (Count, int, Word, Word, void*, void*))                                 \
  F(Win_create_dynamic, (Word, Word, void*))                                                     \
  F(Win_create_c, (void*, Count, Count, Word, Word, void*))                                      \
  F(Win_allocate_c, (Count, Count, Word, Word, void*, void*))                                    \
  F(Win_allocate_shared_c, (Count, Count, Word, Word, void*, void*))
#define ROPEWALK_STARTING_FUNCTIONS(F)                                                           \
  F(Ibcast, (void*, int, Word, int, Word, void*))                                                \
  F(Ireduce, (const void*, void*, int, Word, Word, int, Word, void*))                            \
  F(Iallreduce, (const void*, void*, int, Word, Word, Word, void*))                              \
  F(Ireduce_scatter_block, (const void*, void*, int, Word, Word, Word, void*))                   \
  F(Iallgather, (const void*, int, Word, void*, int, Word, Word, void*))                         \
  F(Ialltoall, (const void*, int, Word, void*, int, Word, Word, void*))                          \
  F(Ineighbor_allgather, (const void*, int, Word, void*, int, Word, Word, void*))                \
  F(Ineighbor_allgatherv, (const void*, int, Word, void*, const int*, const int*, Word, Word,    \
                           void*))                                                               \
  F(Ineighbor_alltoall, (const void*, int, Word, void*, int, Word, Word, void*))                 \
  F(Ineighbor_alltoallv, (const void*, const int*, const int*, Word, void*, const int*,          \
                          const int*, Word, Word, void*))                                        \
  F(Ineighbor_alltoallw, (const void*, const int*, const Count*, const void*, void*,             \
                          const int*, const Count*, const void*, Word, void*))                   \
  F(Ialltoallw, (const void*, const int*, const int*, const void*, void*, const int*,            \
                 const int*, const void*, Word, void*))                                          \
  F(Ineighbor_allgather_c, (const void*, Count, Word, void*, Count, Word, Word, void*))          \
  F(Ineighbor_allgatherv_c, (const void*, Count, Word, void*, const Count*, const Count*, Word,  \
                             Word, void*))                                                       \
  F(Ineighbor_alltoall_c, (const void*, Count, Word, void*, Count, Word, Word, void*))           \
  F(Ineighbor_alltoallv_c, (const void*, const Count*, const Count*, Word, void*, const Count*,  \
                            const Count*, Word, Word, void*))                                    \
  F(Ineighbor_alltoallw_c, (const void*, const Count*, const Count*, const void*, void*,         \
                            const Count*, const Count*, const void*, Word, void*))               \
  F(Ialltoallw_c, (const void*, const Count*, const Count*, const void*, void*, const Count*,    \
                   const Count*, const void*, Word, void*))
// Persistent collectives, of MPI 4. Each ends with the info and the place of the request.
#define ROPEWALK_PERSISTENT_FUNCTIONS(F)                                                         \
  F(Barrier_init, (Word, Word, void*))                                                           \
  F(Bcast_init, (void*, int, Word, int, Word, Word, void*))                                      \
  F(Reduce_init, (const void*, void*, int, Word, Word, int, Word, Word, void*))                  \
  F(Allreduce_init, (const void*, void*, int, Word, Word, Word, Word, void*))                    \
  F(Scan_init, (const void*, void*, int, Word, Word, Word, Word, void*))                         \
  F(Exscan_init, (const void*, void*, int, Word, Word, Word, Word, void*))                       \
  F(Reduce_scatter_init, (const void*, void*, const int*, Word, Word, Word, Word, void*))        \
  F(Reduce_scatter_block_init, (const void*, void*, int, Word, Word, Word, Word, void*))         \
  F(Allgather_init, (const void*, int, Word, void*, int, Word, Word, Word, void*))               \
  F(Allgatherv_init, (const void*, int, Word, void*, const int*, const int*, Word, Word, Word,   \
                      void*))                                                                    \
  F(Gather_init, (const void*, int, Word, void*, int, Word, int, Word, Word, void*))             \
  F(Gatherv_init, (const void*, int, Word, void*, const int*, const int*, Word, int, Word,       \
                   Word, void*))                                                                 \
  F(Scatter_init, (const void*, int, Word, void*, int, Word, int, Word, Word, void*))            \
  F(Scatterv_init, (const void*, const int*, const int*, Word, void*, int, Word, int, Word,      \
                    Word, void*))                                                                \
  F(Alltoall_init, (const void*, int, Word, void*, int, Word, Word, Word, void*))                \
  F(Alltoallv_init, (const void*, const int*, const int*, Word, void*, const int*, const int*,   \
                     Word, Word, Word, void*))                                                   \
  F(Neighbor_allgather_init, (const void*, int, Word, void*, int, Word, Word, Word, void*))      \
  F(Neighbor_allgatherv_init, (const void*, int, Word, void*, const int*, const int*, Word,      \
                               Word, Word, void*))                                               \
  F(Neighbor_alltoall_init, (const void*, int, Word, void*, int, Word, Word, Word, void*))       \
  F(Neighbor_alltoallv_init, (const void*, const int*, const int*, Word, void*, const int*,      \
                              const int*, Word, Word, Word, void*))                              \
  F(Bcast_init_c, (void*, Count, Word, int, Word, Word, void*))                                  \
  F(Reduce_init_c, (const void*, void*, Count, Word, Word, int, Word, Word, void*))              \
  F(Allreduce_init_c, (const void*, void*, Count, Word, Word, Word, Word, void*))                \
  F(Scan_init_c, (const void*, void*, Count, Word, Word, Word, Word, void*))                     \
  F(Exscan_init_c, (const void*, void*, Count, Word, Word, Word, Word, void*))                   \
  F(Reduce_scatter_init_c, (const void*, void*, const Count*, Word, Word, Word, Word, void*))    \
  F(Reduce_scatter_block_init_c, (const void*, void*, Count, Word, Word, Word, Word, void*))     \
  F(Allgather_init_c, (const void*, Count, Word, void*, Count, Word, Word, Word, void*))         \
  F(Allgatherv_init_c, (const void*, Count, Word, void*, const Count*, const Count*, Word,       \
                        Word, Word, void*))                                                      \
  F(Gather_init_c, (const void*, Count, Word, void*, Count, Word, int, Word, Word, void*))       \
  F(Gatherv_init_c, (const void*, Count, Word, void*, const Count*, const Count*, Word, int,     \
                     Word, Word, void*))                                                         \
  F(Scatter_init_c, (const void*, Count, Word, void*, Count, Word, int, Word, Word, void*))      \
  F(Scatterv_init_c, (const void*, const Count*, const Count*, Word, void*, Count, Word, int,    \
                      Word, Word, void*))                                                        \
  F(Alltoall_init_c, (const void*, Count, Word, void*, Count, Word, Word, Word, void*))          \
  F(Alltoallv_init_c, (const void*, const Count*, const Count*, Word, void*, const Count*,       \
                       const Count*, Word, Word, Word, void*))                                   \
  F(Neighbor_allgather_init_c, (const void*, Count, Word, void*, Count, Word, Word, Word,        \
                                void*))                                                          \
  F(Neighbor_allgatherv_init_c, (const void*, Count, Word, void*, const Count*, const Count*,    \
                                 Word, Word, Word, void*))                                       \
  F(Neighbor_alltoall_init_c, (const void*, Count, Word, void*, Count, Word, Word, Word, void*)) \
  F(Neighbor_alltoallv_init_c, (const void*, const Count*, const Count*, Word, void*,            \
                                const Count*, const Count*, Word, Word, Word, void*))            \
  F(Alltoallw_init, (const void*, const int*, const int*, const void*, void*, const int*,        \
                     const int*, const void*, Word, Word, void*))                                \
  F(Neighbor_alltoallw_init, (const void*, const int*, const Count*, const void*, void*,         \
                              const int*, const Count*, const void*, Word, Word, void*))         \
  F(Alltoallw_init_c, (const void*, const Count*, const Count*, const void*, void*,              \
                       const Count*, const Count*, const void*, Word, Word, void*))              \
  F(Neighbor_alltoallw_init_c, (const void*, const Count*, const Count*, const void*, void*,     \
                                const Count*, const Count*, const void*, Word, Word, void*))
#define ROPEWALK_LARGE_FUNCTIONS(F)                                                              \
  F(Bcast_c, (void*, Count, Word, int, Word))                                                    \
  F(Reduce_c, (const void*, void*, Count, Word, Word, int, Word))                                \
  F(Allreduce_c, (const void*, void*, Count, Word, Word, Word))                                  \
  F(Scan_c, (const void*, void*, Count, Word, Word, Word))                                       \
  F(Exscan_c, (const void*, void*, Count, Word, Word, Word))                                     \
  F(Reduce_scatter_c, (const void*, void*, const Count*, Word, Word, Word))                      \
  F(Reduce_scatter_block_c, (const void*, void*, Count, Word, Word, Word))                       \
  F(Allgather_c, (const void*, Count, Word, void*, Count, Word, Word))                           \
  F(Allgatherv_c, (const void*, Count, Word, void*, const Count*, const Count*, Word, Word))     \
  F(Gather_c, (const void*, Count, Word, void*, Count, Word, int, Word))                         \
  F(Gatherv_c, (const void*, Count, Word, void*, const Count*, const Count*, Word, int, Word))   \
  F(Scatter_c, (const void*, Count, Word, void*, Count, Word, int, Word))                        \
  F(Scatterv_c, (const void*, const Count*, const Count*, Word, void*, Count, Word, int, Word))  \
  F(Alltoall_c, (const void*, Count, Word, void*, Count, Word, Word))                            \
  F(Alltoallv_c, (const void*, const Count*, const Count*, Word, void*, const Count*,            \
                  const Count*, Word, Word))                                                     \
  F(Alltoallw_c, (const void*, const Count*, const Count*, const void*, void*, const Count*,      \
                  const Count*, const void*, Word))                                              \
  F(Neighbor_allgather_c, (const void*, Count, Word, void*, Count, Word, Word))                  \
  F(Neighbor_allgatherv_c, (const void*, Count, Word, void*, const Count*, const Count*, Word,   \
                            Word))                                                               \
  F(Neighbor_alltoall_c, (const void*, Count, Word, void*, Count, Word, Word))                   \
  F(Neighbor_alltoallv_c, (const void*, const Count*, const Count*, Word, void*, const Count*,   \
                           const Count*, Word, Word))                                            \
  F(Neighbor_alltoallw_c, (const void*, const Count*, const Count*, const void*, void*,           \
                           const Count*, const Count*, const void*, Word))
// Those that messages and the table of requests need (messages.hpp).
#define ROPEWALK_INIT_FUNCTIONS(F)                                                               \
  F(Init, (int*, void*))                                                                         \
  F(Init_thread, (int*, void*, int, int*))
// These only where MPI_Init went through the drop-in as well, and the process can promise.
#define ROPEWALK_SENDING_FUNCTIONS(F)                                                            \
  F(Send, (const void*, int, Word, int, int, Word))                                              \
  F(Ssend, (const void*, int, Word, int, int, Word))                                             \
  F(Rsend, (const void*, int, Word, int, int, Word))                                             \
  F(Isend, (const void*, int, Word, int, int, Word, void*))                                      \
  F(Issend, (const void*, int, Word, int, int, Word, void*))                                     \
  F(Irsend, (const void*, int, Word, int, int, Word, void*))                                     \
  F(Send_init, (const void*, int, Word, int, int, Word, void*))                                  \
  F(Ssend_init, (const void*, int, Word, int, int, Word, void*))                                 \
  F(Rsend_init, (const void*, int, Word, int, int, Word, void*))                                 \
  F(Send_c, (const void*, Count, Word, int, int, Word))                                          \
  F(Ssend_c, (const void*, Count, Word, int, int, Word))                                         \
  F(Rsend_c, (const void*, Count, Word, int, int, Word))                                         \
  F(Isend_c, (const void*, Count, Word, int, int, Word, void*))                                  \
  F(Issend_c, (const void*, Count, Word, int, int, Word, void*))                                 \
  F(Irsend_c, (const void*, Count, Word, int, int, Word, void*))                                 \
  F(Send_init_c, (const void*, Count, Word, int, int, Word, void*))                              \
  F(Ssend_init_c, (const void*, Count, Word, int, int, Word, void*))                             \
  F(Rsend_init_c, (const void*, Count, Word, int, int, Word, void*))
// Those that receive and complete are ours by their PMPI names as well: no descriptor may come to a
// receive that does not understand it, be it of a binding to Fortran, of a tool or of a plug-in.
#define ROPEWALK_RECEIVING_FUNCTIONS(F)                                                          \
  F(Recv, (void*, int, Word, int, int, Word, void*))                                             \
  F(Irecv, (void*, int, Word, int, int, Word, void*))                                            \
  F(Sendrecv,                                                                                    \
    (const void*, int, Word, int, int, void*, int, Word, int, int, Word, void*))                 \
  F(Sendrecv_replace, (void*, int, Word, int, int, int, int, Word, void*))                       \
  F(Isendrecv,                                                                                   \
    (const void*, int, Word, int, int, void*, int, Word, int, int, Word, void*))                 \
  F(Isendrecv_replace, (void*, int, Word, int, int, int, int, Word, void*))                      \
  F(Probe, (int, int, Word, void*))                                                              \
  F(Iprobe, (int, int, Word, int*, void*))                                                       \
  F(Mprobe, (int, int, Word, void*, void*))                                                      \
  F(Improbe, (int, int, Word, int*, void*, void*))                                               \
  F(Mrecv, (void*, int, Word, void*, void*))                                                     \
  F(Imrecv, (void*, int, Word, void*, void*))                                                    \
  F(Recv_init, (void*, int, Word, int, int, Word, void*))                                        \
  F(Comm_set_info, (Word, Word))                                                                 \
  F(Comm_dup_with_info, (Word, Word, void*))                                                     \
  F(Comm_idup_with_info, (Word, Word, void*, void*))                                             \
  F(Recv_c, (void*, Count, Word, int, int, Word, void*))                                         \
  F(Irecv_c, (void*, Count, Word, int, int, Word, void*))                                        \
  F(Recv_init_c, (void*, Count, Word, int, int, Word, void*))                                    \
  F(Mrecv_c, (void*, Count, Word, void*, void*))                                                 \
  F(Imrecv_c, (void*, Count, Word, void*, void*))                                                \
  F(Sendrecv_c,                                                                                  \
    (const void*, Count, Word, int, int, void*, Count, Word, int, int, Word, void*))             \
  F(Sendrecv_replace_c, (void*, Count, Word, int, int, int, int, Word, void*))                   \
  F(Isendrecv_c,                                                                                 \
    (const void*, Count, Word, int, int, void*, Count, Word, int, int, Word, void*))             \
  F(Isendrecv_replace_c, (void*, Count, Word, int, int, int, int, Word, void*))
// Those that start, complete and free requests: ours where messages are, and once a persistent
// collective is served, by their PMPI names as well. The three in the middle are of MPI 4.1.
#define ROPEWALK_COMPLETING_FUNCTIONS(F)                                                         \
  F(Wait, (void*, void*))                                                                        \
  F(Waitall, (int, void*, void*))                                                                \
  F(Waitany, (int, void*, int*, void*))                                                          \
  F(Waitsome, (int, void*, int*, int*, void*))                                                   \
  F(Test, (void*, int*, void*))                                                                  \
  F(Testall, (int, void*, int*, void*))                                                          \
  F(Testany, (int, void*, int*, int*, void*))                                                    \
  F(Testsome, (int, void*, int*, int*, void*))                                                   \
  F(Request_get_status, (Word, int*, void*))                                                     \
  F(Request_get_status_all, (int, void*, int*, void*))                                           \
  F(Request_get_status_any, (int, void*, int*, int*, void*))                                     \
  F(Request_get_status_some, (int, void*, int*, int*, void*))                                    \
  F(Request_free, (void*))                                                                       \
  F(Cancel, (void*))                                                                             \
  F(Start, (void*))                                                                              \
  F(Startall, (int, void*))
// What is done with windows (onesided.hpp): ours unless ROPEWALK_ONESIDED is off, by their PMPI
// names as well, since bindings to Fortran call these.
#define ROPEWALK_ONESIDED_FUNCTIONS(F)                                                           \
  F(Win_free, (void*))                                                                           \
  F(Win_get_attr, (Word, int, void*, int*))                                                      \
  F(Win_fence, (int, Word))                                                                      \
  F(Win_lock, (int, int, int, Word))                                                             \
  F(Win_unlock, (int, Word))                                                                     \
  F(Win_lock_all, (int, Word))                                                                   \
  F(Win_unlock_all, (Word))                                                                      \
  F(Win_flush, (int, Word))                                                                      \
  F(Win_flush_all, (Word))                                                                       \
  F(Win_flush_local, (int, Word))                                                                \
  F(Win_flush_local_all, (Word))                                                                 \
  F(Win_post, (Word, int, Word))                                                                 \
  F(Win_start, (Word, int, Word))                                                                \
  F(Win_complete, (Word))                                                                        \
  F(Win_wait, (Word))                                                                            \
  F(Win_test, (Word, int*))                                                                      \
  F(Win_sync, (Word))                                                                            \
  F(Put, (const void*, int, Word, int, Count, int, Word, Word))                                  \
  F(Get, (void*, int, Word, int, Count, int, Word, Word))                                        \
  F(Accumulate, (const void*, int, Word, int, Count, int, Word, Word, Word))                     \
  F(Get_accumulate,                                                                              \
    (const void*, int, Word, void*, int, Word, int, Count, int, Word, Word, Word))               \
  F(Fetch_and_op, (const void*, void*, Word, int, Count, Word, Word))                            \
  F(Compare_and_swap, (const void*, const void*, void*, Word, int, Count, Word))                 \
  F(Rput, (const void*, int, Word, int, Count, int, Word, Word, void*))                          \
  F(Rget, (void*, int, Word, int, Count, int, Word, Word, void*))                                \
  F(Raccumulate, (const void*, int, Word, int, Count, int, Word, Word, Word, void*))             \
  F(Rget_accumulate,                                                                             \
    (const void*, int, Word, void*, int, Word, int, Count, int, Word, Word, Word, void*))        \
  F(Put_c, (const void*, Count, Word, int, Count, Count, Word, Word))                            \
  F(Get_c, (void*, Count, Word, int, Count, Count, Word, Word))                                  \
  F(Accumulate_c, (const void*, Count, Word, int, Count, Count, Word, Word, Word))               \
  F(Get_accumulate_c,                                                                            \
    (const void*, Count, Word, void*, Count, Word, int, Count, Count, Word, Word, Word))         \
  F(Rput_c, (const void*, Count, Word, int, Count, Count, Word, Word, void*))                    \
  F(Rget_c, (void*, Count, Word, int, Count, Count, Word, Word, void*))                          \
  F(Raccumulate_c, (const void*, Count, Word, int, Count, Count, Word, Word, Word, void*))       \
  F(Rget_accumulate_c,                                                                           \
    (const void*, Count, Word, void*, Count, Word, int, Count, Count, Word, Word, Word, void*))
// clang-format on
// Those that are ours wherever the drop-in serves.
#define ROPEWALK_SERVED_FUNCTIONS(F) \
  ROPEWALK_FUNCTIONS(F)              \
  ROPEWALK_WINDOW_FUNCTIONS(F)       \
  ROPEWALK_STARTING_FUNCTIONS(F)     \
  ROPEWALK_PERSISTENT_FUNCTIONS(F)   \
  ROPEWALK_LARGE_FUNCTIONS(F)
#define ROPEWALK_MESSAGE_FUNCTIONS(F) \
  ROPEWALK_SENDING_FUNCTIONS(F)       \
  ROPEWALK_RECEIVING_FUNCTIONS(F)     \
  ROPEWALK_COMPLETING_FUNCTIONS(F)
#define ROPEWALK_ALL_FUNCTIONS(F) \
  ROPEWALK_SERVED_FUNCTIONS(F)    \
  ROPEWALK_INIT_FUNCTIONS(F)      \
  ROPEWALK_MESSAGE_FUNCTIONS(F)   \
  ROPEWALK_ONESIDED_FUNCTIONS(F)
// Those that are ours by their PMPI names as well.
#define ROPEWALK_PROFILED_FUNCTIONS(F) \
  ROPEWALK_WINDOW_FUNCTIONS(F)         \
  ROPEWALK_RECEIVING_FUNCTIONS(F)      \
  ROPEWALK_COMPLETING_FUNCTIONS(F)     \
  ROPEWALK_ONESIDED_FUNCTIONS(F)

// The next functions of these names. Those of MPI 4 are null where the library is older.
struct Next {
#define ROPEWALK_POINTER(name, parameters) int(*name) parameters = nullptr;
  ROPEWALK_ALL_FUNCTIONS(ROPEWALK_POINTER)
#undef ROPEWALK_POINTER
};
extern Next next;

// What the slots lead to.
namespace serve {
#define ROPEWALK_DECLARATION(name, parameters) int name parameters;
ROPEWALK_ALL_FUNCTIONS(ROPEWALK_DECLARATION)
#undef ROPEWALK_DECLARATION
}  // namespace serve

// Fills the slots. The first call of any entry point does it, from whatever thread.
void fill_slots();
// From now on the functions of messages are MPI's own.
void pass_messages();
// From now on they are ours.
void take_messages();
// From now on those that start and complete requests are ours, whatever becomes of messages.
void take_completions();

}  // namespace ropewalk::preload
