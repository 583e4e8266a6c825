/* The C interface of ropewalk.
 *
 * A function that returns int returns RW_SUCCESS or an RW_ERROR_* code; rw_last_error() then has
 * the text, which names the argument and the remedy. What is returned through `out` arguments is
 * set on success only. rw_version and rw_last_error return a string that is never NULL,
 * rw_halo_send_buffer and rw_halo_receive_buffer an address, or NULL where there is none.
 *
 * A struct that has a member `size` begins with it, so that it can grow: the library reads and
 * writes as many bytes as it had in the header that the program was compiled with, and members that
 * this header lacked have their defaults. Its INIT macro sets the size and all defaults.
 */
#ifndef ROPEWALK_H
#define ROPEWALK_H

#include <stddef.h>
#include <stdint.h>

/* NOLINTBEGIN(modernize-use-using): this is C */

#ifdef __cplusplus
extern "C" {
#define RW_DEFAULT_EXPORT __attribute__((visibility("default")))
#else
#define RW_DEFAULT_EXPORT
#endif

enum {
  RW_SUCCESS = 0,
  RW_ERROR_ARGUMENT = 1,
  RW_ERROR_MEMORY = 2,
  RW_ERROR_SYSTEM = 3,
  RW_ERROR_MPI = 4,
  RW_ERROR_PEER_DEAD = 5,
  RW_ERROR_UNSUPPORTED = 6,
  RW_ERROR_INTERNAL = 7
};

/* Text of the last error of this thread, "" if there was none. Valid until the next call. */
RW_DEFAULT_EXPORT const char* rw_last_error(void);
RW_DEFAULT_EXPORT const char* rw_version(void);

/* ---- memory ------------------------------------------------------------------------------------
 */

/* Memory in the arena of this process, 128-byte aligned. alignment 0 means 128. */
RW_DEFAULT_EXPORT int rw_alloc(size_t bytes, size_t alignment, void** out);
RW_DEFAULT_EXPORT int rw_free(void* address); /* NULL is allowed */

typedef struct rw_inspection {
  size_t bytes;
  size_t resident_bytes;
  size_t huge_bytes; /* on pages of 2 MiB or more */
  size_t alignment;
  int peers_can_map;
} rw_inspection;
RW_DEFAULT_EXPORT int rw_inspect(const void* address, size_t bytes, rw_inspection* out);

/* ---- process -----------------------------------------------------------------------------------
 */

/* An MPI communicator as one integer, whichever MPI the caller was compiled with. */
typedef uintptr_t rw_mpi_comm;
#define RW_MPI_COMM(comm) ((rw_mpi_comm)(comm))

/* For programs without mpi.h: MPI_Init_thread(MPI_THREAD_MULTIPLE), or nothing where MPI runs
 * already. RW_ERROR_UNSUPPORTED where MPI gives less than MPI_THREAD_MULTIPLE: an MPI that was
 * started here is then ended again, one that ran goes on. RW_ERROR_MPI after MPI_Finalize. */
RW_DEFAULT_EXPORT int rw_init(void);
/* MPI_Finalize, or nothing after it. RW_ERROR_MPI where MPI was never started. */
RW_DEFAULT_EXPORT int rw_finalize(void);
RW_DEFAULT_EXPORT int rw_comm_world(rw_mpi_comm* out); /* MPI_COMM_WORLD */
RW_DEFAULT_EXPORT int rw_comm_rank(rw_mpi_comm comm, int* out);
RW_DEFAULT_EXPORT int rw_comm_size(rw_mpi_comm comm, int* out);

/* ---- endpoints ---------------------------------------------------------------------------------
 */

typedef struct rw_endpoints rw_endpoints;
/* Collective. lanes 0: automatic. threads 0: no comm threads. */
RW_DEFAULT_EXPORT int rw_endpoints_create(rw_mpi_comm comm, int lanes, int threads,
                                          rw_endpoints** out);
RW_DEFAULT_EXPORT int rw_endpoints_free(rw_endpoints* endpoints); /* collective; NULL is allowed */
RW_DEFAULT_EXPORT int rw_endpoints_lanes(const rw_endpoints* endpoints, int* out);
RW_DEFAULT_EXPORT int rw_send(rw_endpoints* endpoints, int lane, const void* data, size_t bytes,
                              int destination, int tag);
RW_DEFAULT_EXPORT int rw_receive(rw_endpoints* endpoints, int lane, void* data, size_t bytes,
                                 int source, int tag);

/* ---- halo exchange -----------------------------------------------------------------------------
 */

enum {
  RW_STRATEGY_AUTOMATIC = 0,
  RW_STRATEGY_SEQUENTIAL,
  RW_STRATEGY_CONCURRENT,
  RW_STRATEGY_THREADED,
  /* Halos only: between ranks of one node; messages go to other nodes. */
  RW_STRATEGY_DIRECT, /* neighbours read each other's memory */
  RW_STRATEGY_PUT     /* rw_halo_create_buffers only: faces are written where they are read */
};

typedef struct rw_grid rw_grid;
RW_DEFAULT_EXPORT int rw_grid_create(rw_mpi_comm comm, int dimensions, const int* extents,
                                     const int* periodic, rw_grid** out);
/* The same, where each node has a compact block of the grid if that is possible: fewer faces leave
 * the node. Ranks keep their numbers in the communicator. */
RW_DEFAULT_EXPORT int rw_grid_create_by_node(rw_mpi_comm comm, int dimensions, const int* extents,
                                             const int* periodic, rw_grid** out);
RW_DEFAULT_EXPORT int rw_grid_free(rw_grid* grid);
RW_DEFAULT_EXPORT int rw_grid_coordinates(const rw_grid* grid, int* out); /* `dimensions` ints */
RW_DEFAULT_EXPORT int rw_grid_neighbour(const rw_grid* grid, int dimension, int direction,
                                        int* out);

/* All elements of an array of these have the same size. */
typedef struct rw_field {
  size_t size; /* sizeof(rw_field) */
  void* data;  /* first byte of the array, ghosts included */
  size_t element_bytes;
  const size_t* interior; /* extents without ghosts */
  const size_t* ghost;    /* width per dimension */
} rw_field;
#define RW_FIELD_INIT \
  { sizeof(rw_field), NULL, 0, NULL, NULL }

typedef struct rw_halo_options {
  size_t size;  /* sizeof(rw_halo_options) */
  int strategy; /* RW_STRATEGY_AUTOMATIC, ... */
  int corners;  /* 1: edges and corners too, for fields; 0 */
  int parts;    /* of each face, handed over by rw_halo_ready, for buffers; 0: none */
  int workers;  /* threads that share the copies, each by rw_halo_start_worker; 0: one */
} rw_halo_options;
#define RW_HALO_OPTIONS_INIT \
  { sizeof(rw_halo_options), RW_STRATEGY_AUTOMATIC, 0, 0, 0 }

typedef struct rw_halo rw_halo;
/* Collective, with the same options on all ranks, but for the workers of each; options NULL: those
 * of RW_HALO_OPTIONS_INIT. send, receive and bytes have 2 x dimensions elements: towards + and - of
 * each dimension. */
RW_DEFAULT_EXPORT int rw_halo_create_faces(const rw_grid* grid, rw_endpoints* endpoints,
                                           const void* const* send, void* const* receive,
                                           const size_t* bytes, const rw_halo_options* options,
                                           rw_halo** out);
RW_DEFAULT_EXPORT int rw_halo_create_fields(const rw_grid* grid, rw_endpoints* endpoints,
                                            int fields, const rw_field* field,
                                            const rw_halo_options* options, rw_halo** out);
/* Faces in memory of the halo: written to the send buffer before an exchange, read from the receive
 * buffer after it. Ask for both anew each time; NULL where there is no face. */
RW_DEFAULT_EXPORT int rw_halo_create_buffers(const rw_grid* grid, rw_endpoints* endpoints,
                                             const size_t* bytes, const rw_halo_options* options,
                                             rw_halo** out);
RW_DEFAULT_EXPORT void* rw_halo_send_buffer(const rw_halo* halo, int direction);
RW_DEFAULT_EXPORT const void* rw_halo_receive_buffer(const rw_halo* halo, int direction);
/* Bytes from this rank to others in one exchange, and the part of them that goes to other nodes. */
RW_DEFAULT_EXPORT int rw_halo_bytes(const rw_halo* halo, size_t* sent, size_t* to_other_nodes);
RW_DEFAULT_EXPORT int rw_halo_start(rw_halo* halo);
RW_DEFAULT_EXPORT int rw_halo_test(rw_halo* halo, int* done);
RW_DEFAULT_EXPORT int rw_halo_wait(rw_halo* halo);
RW_DEFAULT_EXPORT int rw_halo_exchange(rw_halo* halo);
/* start and wait for all options.workers threads together: each calls both with its number, from 0.
 * They share the copies; worker 0 alone calls MPI. All return the error of worker 0. */
RW_DEFAULT_EXPORT int rw_halo_start_worker(rw_halo* halo, int worker);
RW_DEFAULT_EXPORT int rw_halo_wait_worker(rw_halo* halo, int worker);
/* Faces in parts, between start and wait, from any threads: part p of n bytes in P parts begins at
 * byte p * n / P. ready hands over a part that is written; arrived says whether one may be read. */
RW_DEFAULT_EXPORT int rw_halo_ready(rw_halo* halo, int direction, int part);
RW_DEFAULT_EXPORT int rw_halo_arrived(const rw_halo* halo, int direction, int part, int* there);
RW_DEFAULT_EXPORT int rw_halo_free(rw_halo* halo);

/* ---- work stealing and overlap -----------------------------------------------------------------
 */

typedef void (*rw_worker_function)(void* user, int worker);
typedef void (*rw_range_function)(void* user, size_t begin, size_t end);

/* A loop whose iterations are shared out in blocks (0: automatic). All workers run it, each until
 * begin == end, and a barrier lies between two loops. */
typedef struct rw_stealing rw_stealing;
RW_DEFAULT_EXPORT int rw_stealing_create(size_t iterations, int workers, int communicating_workers,
                                         size_t block, rw_stealing** out);
RW_DEFAULT_EXPORT int rw_stealing_next(rw_stealing* loop, int worker, size_t* begin, size_t* end);
RW_DEFAULT_EXPORT int rw_stealing_reset(rw_stealing* loop); /* after a loop that was cut short */
RW_DEFAULT_EXPORT int rw_stealing_free(rw_stealing* loop);

/* Collective: ranks that may use the same cores share them out. threads 0: one for each core. The
 * caller's thread is worker 0. */
typedef struct rw_team rw_team;
RW_DEFAULT_EXPORT int rw_team_create(rw_mpi_comm comm, int threads, int pin, rw_team** out);
RW_DEFAULT_EXPORT int rw_team_size(const rw_team* team, int* out);
/* Calls task(user, worker) on all workers. In a task of the same team: RW_ERROR_ARGUMENT, but where
 * the team has one thread. */
RW_DEFAULT_EXPORT int rw_team_run(rw_team* team, rw_worker_function task, void* user);
RW_DEFAULT_EXPORT int rw_team_barrier(rw_team* team); /* called by all workers, in a task */
RW_DEFAULT_EXPORT int rw_team_free(rw_team* team);

/* faces(worker) on all workers, then the exchange beside interior(begin, end) over the loop, then
 * boundary(worker). faces and boundary may be NULL. The loop is made for rw_team_size workers. */
RW_DEFAULT_EXPORT int rw_overlap(rw_team* team, rw_stealing* loop, rw_worker_function faces,
                                 rw_halo* halo, rw_range_function interior,
                                 rw_worker_function boundary, void* user);

/* ---- messages between two ranks ----------------------------------------------------------------
 */

/* As in MPI, messages from one rank to another are matched in the order they were sent, by tag. A
 * channel's messages meet neither those of MPI nor those of another channel. One thread at a time
 * makes calls of a channel. channel.hpp says more. */
#define RW_ANY_SOURCE (-1)
#define RW_ANY_TAG (-1)
#define RW_LARGEST_TAG 32767 /* that every channel takes; where all ranks are near, all of int */

/* How the bytes of a message go. */
enum {
  RW_MECHANISM_NONE = 0,
  RW_MECHANISM_INLINED,
  RW_MECHANISM_SLOTS,
  RW_MECHANISM_RECEIVER,
  RW_MECHANISM_SENDER,
  RW_MECHANISM_BOTH,
  RW_MECHANISM_PIPELINE,
  RW_MECHANISM_MPI,
  RW_MECHANISM_THREADED
};

typedef struct rw_channel_options {
  size_t size; /* sizeof(rw_channel_options) */
  int force;   /* the mechanism of longer messages, for benches and tests; RW_MECHANISM_NONE: the
                * fastest. The same on all ranks. */
  /* Of this rank, that copy large messages, the caller among them: 1 to 64. It is a size_t so that
   * the struct without it is shorter. */
  size_t threads;
} rw_channel_options;
#define RW_CHANNEL_OPTIONS_INIT \
  { sizeof(rw_channel_options), RW_MECHANISM_NONE, 1 }

/* What a message was. Where a function takes one, NULL is allowed. */
typedef struct rw_message_status {
  size_t size; /* sizeof(rw_message_status) */
  int source;
  int tag;
  size_t bytes;
} rw_message_status;
#define RW_MESSAGE_STATUS_INIT \
  { sizeof(rw_message_status), RW_ANY_SOURCE, RW_ANY_TAG, 0 }

typedef struct rw_channel rw_channel;
/* Collective, with the same options on all ranks; NULL: those of RW_CHANNEL_OPTIONS_INIT. The MPI
 * communicator must outlive the channel. */
RW_DEFAULT_EXPORT int rw_channel_create(rw_mpi_comm comm, const rw_channel_options* options,
                                        rw_channel** out);
/* Every rank frees its channel, after all its messages; none waits. NULL is allowed. */
RW_DEFAULT_EXPORT int rw_channel_free(rw_channel* channel);
/* 1 where messages to this rank go through shared memory, 0 where they go to MPI. */
RW_DEFAULT_EXPORT int rw_channel_is_near(const rw_channel* channel, int rank, int* out);
/* Up to so many bytes a message is copied on its way, and its send does not wait. */
RW_DEFAULT_EXPORT int rw_channel_slot_bytes(const rw_channel* channel, size_t* out);
/* Of the last message that this rank has received: RW_MECHANISM_..., and its name. */
RW_DEFAULT_EXPORT int rw_channel_last_mechanism(const rw_channel* channel, int* out);
RW_DEFAULT_EXPORT int rw_mechanism_name(int mechanism, const char** out);

/* A message longer than the buffer of its receive is dropped: RW_ERROR_ARGUMENT. */
RW_DEFAULT_EXPORT int rw_channel_send(rw_channel* channel, const void* data, size_t bytes, int to,
                                      int tag);
RW_DEFAULT_EXPORT int rw_channel_receive(rw_channel* channel, void* data, size_t bytes, int from,
                                         int tag, rw_message_status* status);
/* Both at once, in whatever order the two come. */
RW_DEFAULT_EXPORT int rw_channel_send_receive(rw_channel* channel, const void* send,
                                              size_t send_bytes, int to, int send_tag,
                                              void* receive, size_t receive_bytes, int from,
                                              int receive_tag, rw_message_status* status);
/* Sets *found to 1, and status, where a message has come that a receive from there would take. */
RW_DEFAULT_EXPORT int rw_channel_probe(rw_channel* channel, int from, int tag, int* found,
                                       rw_message_status* status);

/* The buffer belongs to the message until it is complete. */
typedef struct rw_message rw_message;
RW_DEFAULT_EXPORT int rw_channel_start_send(rw_channel* channel, const void* data, size_t bytes,
                                            int to, int tag, rw_message** out);
RW_DEFAULT_EXPORT int rw_channel_start_receive(rw_channel* channel, void* data, size_t bytes,
                                               int from, int tag, rw_message** out);
/* Messages that rw_message_start sends or receives, again and again. */
RW_DEFAULT_EXPORT int rw_channel_prepare_send(rw_channel* channel, const void* data, size_t bytes,
                                              int to, int tag, rw_message** out);
RW_DEFAULT_EXPORT int rw_channel_prepare_receive(rw_channel* channel, void* data, size_t bytes,
                                                 int from, int tag, rw_message** out);
RW_DEFAULT_EXPORT int rw_message_start(rw_message* message);
/* status is set when *done is 1. */
RW_DEFAULT_EXPORT int rw_message_test(rw_message* message, int* done, rw_message_status* status);
RW_DEFAULT_EXPORT int rw_message_wait(rw_message* message, rw_message_status* status);
/* Waits until it is complete. NULL is allowed. */
RW_DEFAULT_EXPORT int rw_message_free(rw_message* message);

/* ---- collectives --------------------------------------------------------------------------- */

/* Types and operations are ropewalk's own, below, or those of the MPI that is loaded, as
 * RW_MPI_TYPE(MPI_DOUBLE) and RW_MPI_OP(MPI_SUM), derived and user-defined ones included.
 * ropewalk's numbers are no handle of any MPI: neither an int nor an address of user space. */
typedef uint64_t rw_type;
typedef uint64_t rw_op;
#define RW_FIRST_TYPE UINT64_C(0x7277000000000000)
#define RW_FIRST_OP UINT64_C(0x7277000000001000)
#define RW_INT8 (RW_FIRST_TYPE + 0)
#define RW_UINT8 (RW_FIRST_TYPE + 1)
#define RW_INT16 (RW_FIRST_TYPE + 2)
#define RW_UINT16 (RW_FIRST_TYPE + 3)
#define RW_INT32 (RW_FIRST_TYPE + 4)
#define RW_UINT32 (RW_FIRST_TYPE + 5)
#define RW_INT64 (RW_FIRST_TYPE + 6)
#define RW_UINT64 (RW_FIRST_TYPE + 7)
#define RW_FLOAT16 (RW_FIRST_TYPE + 8)
#define RW_BFLOAT16 (RW_FIRST_TYPE + 9)
#define RW_FLOAT32 (RW_FIRST_TYPE + 10)
#define RW_FLOAT64 (RW_FIRST_TYPE + 11)
#define RW_LONG_DOUBLE (RW_FIRST_TYPE + 12)
#define RW_COMPLEX_FLOAT32 (RW_FIRST_TYPE + 13)
#define RW_COMPLEX_FLOAT64 (RW_FIRST_TYPE + 14)
#define RW_BOOLEAN (RW_FIRST_TYPE + 16)
#define RW_BYTE (RW_FIRST_TYPE + 17)
#define RW_MAX (RW_FIRST_OP + 0)
#define RW_MIN (RW_FIRST_OP + 1)
#define RW_SUM (RW_FIRST_OP + 2)
#define RW_PROD (RW_FIRST_OP + 3)
#define RW_LAND (RW_FIRST_OP + 4)
#define RW_BAND (RW_FIRST_OP + 5)
#define RW_LOR (RW_FIRST_OP + 6)
#define RW_BOR (RW_FIRST_OP + 7)
#define RW_LXOR (RW_FIRST_OP + 8)
#define RW_BXOR (RW_FIRST_OP + 9)
/* Of windows only: the operand takes the place of the element, and the element stays as it is. */
#define RW_REPLACE (RW_FIRST_OP + 12)
#define RW_NO_OP (RW_FIRST_OP + 13)
#define RW_MPI_TYPE(type) ((rw_type)(uintptr_t)(type))
#define RW_MPI_OP(op) ((rw_op)(uintptr_t)(op))

/* The data is already where the result goes; MPI_IN_PLACE is understood, too. */
#define RW_IN_PLACE ((void*)(intptr_t)-1)

typedef struct rw_comm rw_comm;
/* Collective. The MPI communicator must outlive it. */
RW_DEFAULT_EXPORT int rw_comm_create(rw_mpi_comm comm, rw_comm** out);
RW_DEFAULT_EXPORT int rw_comm_free(rw_comm* comm); /* collective; NULL is allowed */
/* 1 where ropewalk serves the communicator, on one node or on several; 0 where every call goes to
 * MPI, because ranks of a node cannot reach each other's memory. */
RW_DEFAULT_EXPORT int rw_comm_direct(const rw_comm* comm, int* out);

/* They are called as MPI's functions, with 64-bit counts. Counts and displacements are in elements.
 */
RW_DEFAULT_EXPORT int rw_barrier(rw_comm* comm);
RW_DEFAULT_EXPORT int rw_allreduce(const void* send, void* receive, size_t count, rw_type type,
                                   rw_op op, rw_comm* comm);
RW_DEFAULT_EXPORT int rw_reduce(const void* send, void* receive, size_t count, rw_type type,
                                rw_op op, int root, rw_comm* comm);
RW_DEFAULT_EXPORT int rw_scan(const void* send, void* receive, size_t count, rw_type type, rw_op op,
                              rw_comm* comm);
RW_DEFAULT_EXPORT int rw_exscan(const void* send, void* receive, size_t count, rw_type type,
                                rw_op op, rw_comm* comm);
RW_DEFAULT_EXPORT int rw_reduce_scatter(const void* send, void* receive, const size_t* counts,
                                        rw_type type, rw_op op, rw_comm* comm);
RW_DEFAULT_EXPORT int rw_reduce_scatter_block(const void* send, void* receive, size_t count,
                                              rw_type type, rw_op op, rw_comm* comm);
RW_DEFAULT_EXPORT int rw_bcast(void* data, size_t count, rw_type type, int root, rw_comm* comm);
RW_DEFAULT_EXPORT int rw_allgather(const void* send, void* receive, size_t count, rw_type type,
                                   rw_comm* comm);
RW_DEFAULT_EXPORT int rw_allgatherv(const void* send, size_t send_count, void* receive,
                                    const size_t* counts, const size_t* displacements, rw_type type,
                                    rw_comm* comm);
RW_DEFAULT_EXPORT int rw_gather(const void* send, void* receive, size_t count, rw_type type,
                                int root, rw_comm* comm);
RW_DEFAULT_EXPORT int rw_gatherv(const void* send, size_t send_count, void* receive,
                                 const size_t* counts, const size_t* displacements, rw_type type,
                                 int root, rw_comm* comm);
RW_DEFAULT_EXPORT int rw_scatter(const void* send, void* receive, size_t count, rw_type type,
                                 int root, rw_comm* comm);
RW_DEFAULT_EXPORT int rw_scatterv(const void* send, const size_t* counts,
                                  const size_t* displacements, void* receive, size_t receive_count,
                                  rw_type type, int root, rw_comm* comm);
RW_DEFAULT_EXPORT int rw_alltoall(const void* send, void* receive, size_t count, rw_type type,
                                  rw_comm* comm);
RW_DEFAULT_EXPORT int rw_alltoallv(const void* send, const size_t* send_counts,
                                   const size_t* send_displacements, void* receive,
                                   const size_t* receive_counts,
                                   const size_t* receive_displacements, rw_type type,
                                   rw_comm* comm);

/* The nonblocking functions need MPI_THREAD_MULTIPLE, and run in the order in which they were
 * started. Buffers, counts, displacements, derived types and operations belong to the call until it
 * is complete. */
typedef struct rw_request rw_request;
RW_DEFAULT_EXPORT int rw_ibarrier(rw_comm* comm, rw_request** out);
RW_DEFAULT_EXPORT int rw_iallreduce(const void* send, void* receive, size_t count, rw_type type,
                                    rw_op op, rw_comm* comm, rw_request** out);
RW_DEFAULT_EXPORT int rw_ireduce(const void* send, void* receive, size_t count, rw_type type,
                                 rw_op op, int root, rw_comm* comm, rw_request** out);
RW_DEFAULT_EXPORT int rw_iscan(const void* send, void* receive, size_t count, rw_type type,
                               rw_op op, rw_comm* comm, rw_request** out);
RW_DEFAULT_EXPORT int rw_iexscan(const void* send, void* receive, size_t count, rw_type type,
                                 rw_op op, rw_comm* comm, rw_request** out);
RW_DEFAULT_EXPORT int rw_ireduce_scatter(const void* send, void* receive, const size_t* counts,
                                         rw_type type, rw_op op, rw_comm* comm, rw_request** out);
RW_DEFAULT_EXPORT int rw_ireduce_scatter_block(const void* send, void* receive, size_t count,
                                               rw_type type, rw_op op, rw_comm* comm,
                                               rw_request** out);
RW_DEFAULT_EXPORT int rw_ibcast(void* data, size_t count, rw_type type, int root, rw_comm* comm,
                                rw_request** out);
RW_DEFAULT_EXPORT int rw_iallgather(const void* send, void* receive, size_t count, rw_type type,
                                    rw_comm* comm, rw_request** out);
RW_DEFAULT_EXPORT int rw_iallgatherv(const void* send, size_t send_count, void* receive,
                                     const size_t* counts, const size_t* displacements,
                                     rw_type type, rw_comm* comm, rw_request** out);
RW_DEFAULT_EXPORT int rw_igather(const void* send, void* receive, size_t count, rw_type type,
                                 int root, rw_comm* comm, rw_request** out);
RW_DEFAULT_EXPORT int rw_igatherv(const void* send, size_t send_count, void* receive,
                                  const size_t* counts, const size_t* displacements, rw_type type,
                                  int root, rw_comm* comm, rw_request** out);
RW_DEFAULT_EXPORT int rw_iscatter(const void* send, void* receive, size_t count, rw_type type,
                                  int root, rw_comm* comm, rw_request** out);
RW_DEFAULT_EXPORT int rw_iscatterv(const void* send, const size_t* counts,
                                   const size_t* displacements, void* receive, size_t receive_count,
                                   rw_type type, int root, rw_comm* comm, rw_request** out);
RW_DEFAULT_EXPORT int rw_ialltoall(const void* send, void* receive, size_t count, rw_type type,
                                   rw_comm* comm, rw_request** out);
RW_DEFAULT_EXPORT int rw_ialltoallv(const void* send, const size_t* send_counts,
                                    const size_t* send_displacements, void* receive,
                                    const size_t* receive_counts,
                                    const size_t* receive_displacements, rw_type type,
                                    rw_comm* comm, rw_request** out);
/* When *done is 1 the request is freed and *request is NULL. */
RW_DEFAULT_EXPORT int rw_test(rw_request** request, int* done);
RW_DEFAULT_EXPORT int rw_wait(rw_request** request);

/* ---- repeated reductions --------------------------------------------------------------------- */

/* A vector that is reduced again and again, such as a gradient. output NULL: it lies in memory of
 * the plan (rw_plan_data). input NULL: it is reduced in place. */
typedef struct rw_plan_tensor {
  size_t count;
  rw_type type; /* ropewalk's own */
  const void* input;
  void* output;
} rw_plan_tensor;
/* Zero means the default of each member. */
typedef struct rw_plan_options {
  rw_op op;            /* ropewalk's own; RW_SUM */
  int average;         /* 1: sums divided by the number of ranks */
  size_t bucket_bytes; /* of vectors that small tensors are fused into; 4 MiB */
  size_t fuse_bytes;   /* tensors up to this size are fused; 64 KiB, (size_t)-1: none */
  int no_thread;       /* 1: the caller alone makes progress */
  int threads;         /* of this rank that share large sums over several nodes; automatic */
} rw_plan_options;

typedef struct rw_plan rw_plan;
/* Collective. options NULL: defaults. */
RW_DEFAULT_EXPORT int rw_plan_create(rw_mpi_comm comm, int tensors, const rw_plan_tensor* tensor,
                                     const rw_plan_options* options, rw_plan** out);
RW_DEFAULT_EXPORT int rw_plan_free(rw_plan* plan); /* collective; NULL is allowed */
RW_DEFAULT_EXPORT int rw_plan_buckets(const rw_plan* plan, int* out);
RW_DEFAULT_EXPORT int rw_plan_bucket_of(const rw_plan* plan, int tensor, int* out);
RW_DEFAULT_EXPORT int rw_plan_bind(rw_plan* plan, int tensor, const void* input, void* output);
RW_DEFAULT_EXPORT int rw_plan_data(const rw_plan* plan, int tensor, void** out);
/* They start one bucket, all buckets that are not under way, or each bucket when its tensors are
 * ready; in the same order on all ranks. */
RW_DEFAULT_EXPORT int rw_plan_start_bucket(rw_plan* plan, int bucket);
RW_DEFAULT_EXPORT int rw_plan_start(rw_plan* plan);
RW_DEFAULT_EXPORT int rw_plan_ready(rw_plan* plan, int tensor);
/* bucket -1: all. rw_plan_wait(plan, -1) ends a round of rw_plan_ready. */
RW_DEFAULT_EXPORT int rw_plan_test(rw_plan* plan, int bucket, int* done);
RW_DEFAULT_EXPORT int rw_plan_wait(rw_plan* plan, int bucket);
RW_DEFAULT_EXPORT int rw_plan_reduce(rw_plan* plan); /* start and wait */

/* NOLINTEND(modernize-use-using) */

#ifdef __cplusplus
}
#endif

#include "ropewalk/irregular_halo.h"
#include "ropewalk/page_block.h"
#include "ropewalk/subarray_exchange.h"
#include "ropewalk/window.h"

#endif
