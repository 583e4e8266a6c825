/* onesided.c with the PMPI names of all that is done with windows. */
#include "check.h"

#define MPI_Win_allocate PMPI_Win_allocate
#define MPI_Win_allocate_shared PMPI_Win_allocate_shared
#define MPI_Win_create PMPI_Win_create
#define MPI_Win_free PMPI_Win_free
#define MPI_Win_get_attr PMPI_Win_get_attr
#define MPI_Win_fence PMPI_Win_fence
#define MPI_Win_lock PMPI_Win_lock
#define MPI_Win_unlock PMPI_Win_unlock
#define MPI_Win_lock_all PMPI_Win_lock_all
#define MPI_Win_unlock_all PMPI_Win_unlock_all
#define MPI_Win_flush PMPI_Win_flush
#define MPI_Win_flush_all PMPI_Win_flush_all
#define MPI_Win_post PMPI_Win_post
#define MPI_Win_start PMPI_Win_start
#define MPI_Win_complete PMPI_Win_complete
#define MPI_Win_wait PMPI_Win_wait
#define MPI_Win_test PMPI_Win_test
#define MPI_Put PMPI_Put
#define MPI_Get PMPI_Get
#define MPI_Accumulate PMPI_Accumulate
#define MPI_Get_accumulate PMPI_Get_accumulate
#define MPI_Fetch_and_op PMPI_Fetch_and_op
#define MPI_Compare_and_swap PMPI_Compare_and_swap
#define MPI_Rput PMPI_Rput
#define MPI_Rget PMPI_Rget
#define MPI_Raccumulate PMPI_Raccumulate
#include "onesided.c"
