/* The C interface of ropewalk.
 *
 * Every function returns RW_SUCCESS or an RW_ERROR_* code; rw_last_error() then has the text, which
 * names the argument and the remedy. Pointers returned through `out` arguments are set on success
 * only.
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

/* An MPI communicator as one word, whichever MPI the caller was compiled with. */
typedef uintptr_t rw_mpi_comm;
#define RW_MPI_COMM(comm) ((rw_mpi_comm)(comm))

/* For programs without mpi.h: MPI_Init_thread(MPI_THREAD_MULTIPLE), or nothing where MPI runs
 * already, and MPI_Finalize. */
RW_DEFAULT_EXPORT int rw_init(void);
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
  RW_STRATEGY_THREADED
};

typedef struct rw_grid rw_grid;
RW_DEFAULT_EXPORT int rw_grid_create(rw_mpi_comm comm, int dimensions, const int* extents,
                                     const int* periodic, rw_grid** out);
RW_DEFAULT_EXPORT int rw_grid_free(rw_grid* grid);
RW_DEFAULT_EXPORT int rw_grid_coordinates(const rw_grid* grid, int* out); /* `dimensions` ints */
RW_DEFAULT_EXPORT int rw_grid_neighbour(const rw_grid* grid, int dimension, int direction,
                                        int* out);

typedef struct rw_field {
  void* data; /* first byte of the array, ghosts included */
  size_t element_bytes;
  const size_t* interior; /* extents without ghosts */
  const size_t* ghost;    /* width per dimension */
} rw_field;

typedef struct rw_halo rw_halo;
/* 2 x dimensions pointers and sizes: towards + and - of each dimension. */
RW_DEFAULT_EXPORT int rw_halo_faces(const rw_grid* grid, rw_endpoints* endpoints,
                                    const void* const* send, void* const* receive,
                                    const size_t* bytes, int strategy, rw_halo** out);
RW_DEFAULT_EXPORT int rw_halo_fields(const rw_grid* grid, rw_endpoints* endpoints, int fields,
                                     const rw_field* field, int corners, int strategy,
                                     rw_halo** out);
RW_DEFAULT_EXPORT int rw_halo_start(rw_halo* halo);
RW_DEFAULT_EXPORT int rw_halo_test(rw_halo* halo, int* done);
RW_DEFAULT_EXPORT int rw_halo_wait(rw_halo* halo);
RW_DEFAULT_EXPORT int rw_halo_exchange(rw_halo* halo);
RW_DEFAULT_EXPORT int rw_halo_free(rw_halo* halo);

/* NOLINTEND(modernize-use-using) */

#ifdef __cplusplus
}
#endif
#undef RW_DEFAULT_EXPORT
#endif
