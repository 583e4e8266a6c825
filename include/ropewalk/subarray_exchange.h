/* The C interface of the exchange of parts of arrays between all ranks: transposes of distributed
 * arrays, and other changes of how an array lies over the ranks. ropewalk.h includes this file. */
#ifndef ROPEWALK_SUBARRAY_EXCHANGE_H
#define ROPEWALK_SUBARRAY_EXCHANGE_H

#include <stddef.h>

#include "ropewalk/ropewalk.h"

/* NOLINTBEGIN(modernize-use-using): this is C */

#ifdef __cplusplus
extern "C" {
#endif

/* Elements of an array at equal distances in each dimension. Dimensions may be listed in any order:
 * it is the order in which the elements travel, the last dimension fastest. */
typedef struct rw_subarray {
  size_t offset;         /* bytes from the beginning of the array to the first element */
  size_t dimensions;     /* at most 6; 0: no element at all */
  const size_t* extents; /* elements in each dimension */
  const size_t* strides; /* bytes from an element to the next one in each dimension */
} rw_subarray;

typedef struct rw_subarray_exchange rw_subarray_exchange;
/* Collective. `sent` has for each rank, this one included, what of an array of `sent_bytes` goes
 * there; `received` what of the array that receives, of `received_bytes`, comes from there. What a
 * rank sends to another has the same extents as what the other receives from it; `element_bytes`
 * are the same on all ranks, and parts that are received must not overlap. The MPI communicator
 * must outlive the exchange. */
RW_DEFAULT_EXPORT int rw_subarray_exchange_create(rw_mpi_comm comm, size_t element_bytes,
                                                  size_t sent_bytes, const rw_subarray* sent,
                                                  size_t received_bytes,
                                                  const rw_subarray* received,
                                                  rw_subarray_exchange** out);
/* Collective; NULL is allowed. */
RW_DEFAULT_EXPORT int rw_subarray_exchange_free(rw_subarray_exchange* exchange);
/* The array that receives, which belongs to the exchange and is zero at first, and its length.
 * Either may be NULL. */
RW_DEFAULT_EXPORT int rw_subarray_exchange_array(const rw_subarray_exchange* exchange, void** data,
                                                 size_t* bytes);
/* Bytes that an exchange sends to other ranks of this node, and to other nodes; either may be
 * NULL. */
RW_DEFAULT_EXPORT int rw_subarray_exchange_bytes(const rw_subarray_exchange* exchange,
                                                 size_t* near_bytes, size_t* far_bytes);
/* Collective. Sends the parts of `array`, which may be changed again when it returns, and receives
 * those of the others. `array` may be the array of another exchange, but not of this one. */
RW_DEFAULT_EXPORT int rw_subarray_exchange_run(rw_subarray_exchange* exchange, const void* array);

/* NOLINTEND(modernize-use-using) */

#ifdef __cplusplus
}
#endif
#endif
