/* The C interface of blocks of memory whose pages and place are chosen. ropewalk.h includes this
 * file. */
#ifndef ROPEWALK_PAGE_BLOCK_H
#define ROPEWALK_PAGE_BLOCK_H

#include <stddef.h>

#include "ropewalk/ropewalk.h"

/* NOLINTBEGIN(modernize-use-using): this is C */

#ifdef __cplusplus
extern "C" {
#endif

enum {                      /* whether pages have to be huge */
       RW_PAGES_PREFER = 0, /* the best that can be had */
       RW_PAGES_REQUIRE,    /* RW_ERROR_MEMORY where they are not */
       RW_PAGES_NEVER       /* 4 KiB */
};

enum { /* what kind of memory a NUMA node has */
       RW_MEMORY_ANY = 0,
       RW_MEMORY_DDR, /* ordinary: of a node with cores */
       RW_MEMORY_HBM, /* faster, without cores */
       RW_MEMORY_CXL  /* slower, without cores: CXL, persistent memory */
};

typedef struct rw_memory_options {
  size_t size; /* sizeof(rw_memory_options) */
  int pages;   /* RW_PAGES_* */
  int node;    /* the NUMA node on which the pages lie; -1: any */
  int kind;    /* RW_MEMORY_*; not beside a node */
} rw_memory_options;
#define RW_MEMORY_OPTIONS_INIT \
  { sizeof(rw_memory_options), RW_PAGES_PREFER, -1, RW_MEMORY_ANY }

typedef struct rw_page_block rw_page_block;
/* A block of zeros outside of the arena, whose pages are present, and verified to be what the
 * options say; NULL: those of RW_MEMORY_OPTIONS_INIT. RW_ERROR_ARGUMENT says which NUMA nodes there
 * are, RW_ERROR_MEMORY why the pages cannot be had. */
RW_DEFAULT_EXPORT int rw_page_block_create(size_t bytes, const rw_memory_options* options,
                                           rw_page_block** out);
RW_DEFAULT_EXPORT int rw_page_block_data(const rw_page_block* block, void** out);
RW_DEFAULT_EXPORT int rw_page_block_free(rw_page_block* block); /* NULL is allowed */

/* NOLINTEND(modernize-use-using) */

#ifdef __cplusplus
}
#endif
#endif
