/* The C interface of the exchange along lists of neighbors. ropewalk.h includes this file. */
#ifndef ROPEWALK_IRREGULAR_HALO_H
#define ROPEWALK_IRREGULAR_HALO_H

#include <stddef.h>
#include <stdint.h>

#include "ropewalk/ropewalk.h"

/* NOLINTBEGIN(modernize-use-using): this is C */

#ifdef __cplusplus
extern "C" {
#endif

/* What a rank shares with another rank, or with itself. Elements are told by their index in this
 * rank's array. A list may be NULL where it is empty. */
typedef struct rw_neighbor {
  int rank;
  size_t sends;           /* elements that go there, in the order in which they travel */
  const int64_t* send;    /* their indices */
  size_t receives;        /* elements that come from there, in the order that rank sends them */
  const int64_t* receive; /* their indices */
} rw_neighbor;

typedef struct rw_irregular_halo rw_irregular_halo;
/* Collective. The array of this rank has `elements` of `element_bytes` each; these are the same on
 * all ranks. Where two ranks exchange anything, each lists the other, once. The MPI communicator
 * must outlive the halo. */
RW_DEFAULT_EXPORT int rw_irregular_halo_create(rw_mpi_comm comm, size_t neighbors,
                                               const rw_neighbor* neighbor, size_t elements,
                                               size_t element_bytes, rw_irregular_halo** out);
/* Collective. Every rank owns `rows` consecutive global numbers, in the order of ranks, and needs
 * the elements with the global numbers `ghost`. Rows have the indices 0 to rows - 1, ghost i has
 * rows + i. */
RW_DEFAULT_EXPORT int rw_irregular_halo_create_by_rows(rw_mpi_comm comm, int64_t rows,
                                                       size_t ghosts, const int64_t* ghost,
                                                       size_t element_bytes,
                                                       rw_irregular_halo** out);
/* Collective; NULL is allowed. */
RW_DEFAULT_EXPORT int rw_irregular_halo_free(rw_irregular_halo* halo);
/* Bytes that an exchange sends to ranks of this node, and to others; either may be NULL. */
RW_DEFAULT_EXPORT int rw_irregular_halo_bytes(const rw_irregular_halo* halo, size_t* near_bytes,
                                              size_t* far_bytes);

/* Neighbors make the same calls in the same order. rw_irregular_halo_exchange is start and wait.
 * When start returns, the elements that are sent may be changed; those that are received belong to
 * the exchange until it is complete. */
RW_DEFAULT_EXPORT int rw_irregular_halo_exchange(rw_irregular_halo* halo, void* array);
RW_DEFAULT_EXPORT int rw_irregular_halo_start(rw_irregular_halo* halo, void* array);
RW_DEFAULT_EXPORT int rw_irregular_halo_test(rw_irregular_halo* halo, int* done);
RW_DEFAULT_EXPORT int rw_irregular_halo_wait(rw_irregular_halo* halo);
/* The other way round: received elements go back to their owners, where elements become (element op
 * value), in the order of the neighbors. Types and operations are ropewalk's own. */
RW_DEFAULT_EXPORT int rw_irregular_halo_combine(rw_irregular_halo* halo, void* array, rw_type type,
                                                rw_op op);

/* NOLINTEND(modernize-use-using) */

#ifdef __cplusplus
}
#endif
#endif
