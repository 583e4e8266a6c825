/* The C interface of windows: memory of each rank that the other ranks read and write without its
 * help. ropewalk.h includes this file. Offsets and lengths are in bytes. One thread at
 * a time makes calls of a window. */
#ifndef ROPEWALK_WINDOW_H
#define ROPEWALK_WINDOW_H

#include <stddef.h>
#include <stdint.h>

#include "ropewalk/ropewalk.h"

/* NOLINTBEGIN(modernize-use-using): this is C */

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rw_window_options {
  size_t size; /* sizeof(rw_window_options) */
  int signals; /* counters of each rank that others raise, 0 to 65536; the same on all ranks */
} rw_window_options;
#define RW_WINDOW_OPTIONS_INIT \
  { sizeof(rw_window_options), 8 }

typedef struct rw_window rw_window;
/* Collective, with the same options on all ranks; NULL: those of RW_WINDOW_OPTIONS_INIT. `bytes` of
 * this rank may differ from those of others, and are zero at first. RW_ERROR_UNSUPPORTED on every
 * rank where those of a node cannot map each other's memory, and on several nodes where MPI was
 * started without MPI_THREAD_MULTIPLE. */
RW_DEFAULT_EXPORT int rw_window_create(rw_mpi_comm comm, size_t bytes,
                                       const rw_window_options* options, rw_window** out);
/* Every rank frees its window, after a fence or a barrier; on one node none waits, over several it
 * is collective. NULL is allowed. */
RW_DEFAULT_EXPORT int rw_window_free(rw_window* window);
/* The memory of a rank of this node as it is mapped here, and the length of any rank's; either may
 * be NULL. RW_ERROR_UNSUPPORTED for the memory of a rank on another node. */
RW_DEFAULT_EXPORT int rw_window_memory(const rw_window* window, int rank, void** data,
                                       size_t* bytes);

/* When they return, the buffer may be used again. Another rank may read what was put once it has
 * seen a signal, a fence, or a message after a flush that followed. */
RW_DEFAULT_EXPORT int rw_window_put(rw_window* window, const void* from, size_t bytes, int to,
                                    size_t offset);
RW_DEFAULT_EXPORT int rw_window_get(const rw_window* window, void* into, size_t bytes, int from,
                                    size_t offset);

/* Atomic for each element, with types of at most 8 bytes and operations of ropewalk's own that MPI
 * allows for them. Offsets are multiples of the element's size.
 * `count` elements there become (element op operand). */
RW_DEFAULT_EXPORT int rw_window_accumulate(rw_window* window, const void* operands, size_t count,
                                           rw_type type, rw_op op, int to, size_t offset);
/* One element; `before` gets what it was. RW_NO_OP makes it an atomic load, whose operand may be
 * NULL, RW_REPLACE an exchange. */
RW_DEFAULT_EXPORT int rw_window_fetch_and_op(rw_window* window, const void* operand, void* before,
                                             rw_type type, rw_op op, int rank, size_t offset);
/* One element becomes `desired` where its bytes are those of `expected`. */
RW_DEFAULT_EXPORT int rw_window_compare_and_swap(rw_window* window, const void* expected,
                                                 const void* desired, void* before, rw_type type,
                                                 int rank, size_t offset);

/* Returns when all that this rank has put and accumulated is there, on whatever node. */
RW_DEFAULT_EXPORT int rw_window_flush(rw_window* window);
/* Raises counter `index` of a rank, after all that this rank has put anywhere before. */
RW_DEFAULT_EXPORT int rw_window_signal(rw_window* window, int rank, int index, uint64_t by);
/* How far a counter of this rank was raised; and a wait until it is at least `value`. */
RW_DEFAULT_EXPORT int rw_window_signals(const rw_window* window, int index, uint64_t* out);
RW_DEFAULT_EXPORT int rw_window_wait_signal(rw_window* window, int index, uint64_t value);
/* Collective: all ranks have come here, and what they have put before is there. */
RW_DEFAULT_EXPORT int rw_window_fence(rw_window* window);

/* NOLINTEND(modernize-use-using) */

#ifdef __cplusplus
}
#endif
#endif
