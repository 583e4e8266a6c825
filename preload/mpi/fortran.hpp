// The Fortran names of the functions that the drop-in replaces.
//
// Most Fortran bindings call the C entry points MPI_X, which slots.cc exports. Those that call
// PMPI_X are served here: all of Open MPI's, and, in the mpi_f08 module of MPICH and its family,
// the functions without a buffer. In mpif.h, `use mpi` and `use mpi_f08` alike the arguments are
// addresses: of buffers, and of integers (an mpi_f08 handle is a struct of one). The last is the
// error code's, null where a caller of mpi_f08 leaves it out.
#pragma once

#include "functions.hpp"

// F(E, function of `serve`, name, NAME, (kinds of arguments)); fortran.cc defines the kinds.
// clang-format off
#define ROPEWALK_FORTRAN_FUNCTIONS(F, E)                                                           \
  F(E, Finalize, finalize, FINALIZE, ())                                                           \
  F(E, Alloc_mem, alloc_mem, ALLOC_MEM, (Bytes, Info, Address))                                    \
  F(E, Free_mem, free_mem, FREE_MEM, (Choice))                                                     \
  F(E, Barrier, barrier, BARRIER, (Comm))                                                          \
  F(E, Bcast, bcast, BCAST, (Choice, Number, Type, Number, Comm))                                  \
  F(E, Reduce, reduce, REDUCE, (Choice, Choice, Number, Type, Op, Number, Comm))                   \
  F(E, Allreduce, allreduce, ALLREDUCE, (Choice, Choice, Number, Type, Op, Comm))                  \
  F(E, Scan, scan, SCAN, (Choice, Choice, Number, Type, Op, Comm))                                 \
  F(E, Exscan, exscan, EXSCAN, (Choice, Choice, Number, Type, Op, Comm))                           \
  F(E, Reduce_scatter, reduce_scatter, REDUCE_SCATTER,                                             \
    (Choice, Choice, Numbers, Type, Op, Comm))                                                     \
  F(E, Reduce_scatter_block, reduce_scatter_block, REDUCE_SCATTER_BLOCK,                           \
    (Choice, Choice, Number, Type, Op, Comm))                                                      \
  F(E, Allgather, allgather, ALLGATHER, (Choice, Number, Type, Choice, Number, Type, Comm))        \
  F(E, Allgatherv, allgatherv, ALLGATHERV,                                                         \
    (Choice, Number, Type, Choice, Numbers, Numbers, Type, Comm))                                  \
  F(E, Gather, gather, GATHER, (Choice, Number, Type, Choice, Number, Type, Number, Comm))         \
  F(E, Gatherv, gatherv, GATHERV,                                                                  \
    (Choice, Number, Type, Choice, Numbers, Numbers, Type, Number, Comm))                          \
  F(E, Scatter, scatter, SCATTER, (Choice, Number, Type, Choice, Number, Type, Number, Comm))      \
  F(E, Scatterv, scatterv, SCATTERV,                                                               \
    (Choice, Numbers, Numbers, Type, Choice, Number, Type, Number, Comm))                          \
  F(E, Alltoall, alltoall, ALLTOALL, (Choice, Number, Type, Choice, Number, Type, Comm))           \
  F(E, Alltoallv, alltoallv, ALLTOALLV,                                                            \
    (Choice, Numbers, Numbers, Type, Choice, Numbers, Numbers, Type, Comm))                        \
  F(E, Alltoallw_fortran, alltoallw, ALLTOALLW,                                                    \
    (Choice, Numbers, Numbers, Numbers, Choice, Numbers, Numbers, Numbers, Handle))                \
  F(E, Neighbor_allgather, neighbor_allgather, NEIGHBOR_ALLGATHER,                                 \
    (Choice, Number, Type, Choice, Number, Type, Comm))                                            \
  F(E, Neighbor_allgatherv, neighbor_allgatherv, NEIGHBOR_ALLGATHERV,                              \
    (Choice, Number, Type, Choice, Numbers, Numbers, Type, Comm))                                  \
  F(E, Neighbor_alltoall, neighbor_alltoall, NEIGHBOR_ALLTOALL,                                    \
    (Choice, Number, Type, Choice, Number, Type, Comm))                                            \
  F(E, Neighbor_alltoallv, neighbor_alltoallv, NEIGHBOR_ALLTOALLV,                                 \
    (Choice, Numbers, Numbers, Type, Choice, Numbers, Numbers, Type, Comm))                        \
  F(E, Neighbor_alltoallw_fortran, neighbor_alltoallw, NEIGHBOR_ALLTOALLW,                         \
    (Choice, Numbers, Places, Numbers, Choice, Numbers, Places, Numbers, Handle))                  \
  F(E, Ibcast, ibcast, IBCAST, (Choice, Number, Type, Number, Comm, Request))                      \
  F(E, Ireduce, ireduce, IREDUCE, (Choice, Choice, Number, Type, Op, Number, Comm, Request))       \
  F(E, Iallreduce, iallreduce, IALLREDUCE, (Choice, Choice, Number, Type, Op, Comm, Request))      \
  F(E, Ireduce_scatter_block, ireduce_scatter_block, IREDUCE_SCATTER_BLOCK,                        \
    (Choice, Choice, Number, Type, Op, Comm, Request))                                             \
  F(E, Iallgather, iallgather, IALLGATHER,                                                         \
    (Choice, Number, Type, Choice, Number, Type, Comm, Request))                                   \
  F(E, Ialltoall, ialltoall, IALLTOALL,                                                            \
    (Choice, Number, Type, Choice, Number, Type, Comm, Request))                                   \
  F(E, Ialltoallw_fortran, ialltoallw, IALLTOALLW,                                                 \
    (Choice, Numbers, Numbers, Numbers, Choice, Numbers, Numbers, Numbers, Handle, Request))       \
  F(E, Ineighbor_allgather, ineighbor_allgather, INEIGHBOR_ALLGATHER,                              \
    (Choice, Number, Type, Choice, Number, Type, Comm, Request))                                   \
  F(E, Ineighbor_allgatherv, ineighbor_allgatherv, INEIGHBOR_ALLGATHERV,                           \
    (Choice, Number, Type, Choice, Numbers, Numbers, Type, Comm, Request))                         \
  F(E, Ineighbor_alltoall, ineighbor_alltoall, INEIGHBOR_ALLTOALL,                                 \
    (Choice, Number, Type, Choice, Number, Type, Comm, Request))                                   \
  F(E, Ineighbor_alltoallv, ineighbor_alltoallv, INEIGHBOR_ALLTOALLV,                              \
    (Choice, Numbers, Numbers, Type, Choice, Numbers, Numbers, Type, Comm, Request))               \
  F(E, Ineighbor_alltoallw_fortran, ineighbor_alltoallw, INEIGHBOR_ALLTOALLW,                      \
    (Choice, Numbers, Places, Numbers, Choice, Numbers, Places, Numbers, Handle, Request))

// E(symbol, function of `serve`, belongs to mpi_f08, (kinds)), for every exported name: what
// compilers make of a name in mpif.h and `use mpi`, and mpi_f08's. mpi_alloc_mem_cptr is what
// `use mpi` calls for a type(c_ptr).
#define ROPEWALK_FORTRAN_MANGLED(E, function, name, NAME, kinds)                                   \
  E(mpi_##name##_, function, false, kinds)                                                         \
  E(mpi_##name##__, function, false, kinds)                                                        \
  E(mpi_##name, function, false, kinds)                                                            \
  E(MPI_##NAME, function, false, kinds)
#define ROPEWALK_FORTRAN_NAMES(E, function, name, NAME, kinds)                                     \
  ROPEWALK_FORTRAN_MANGLED(E, function, name, NAME, kinds)                                         \
  E(mpi_##name##_f08_, function, true, kinds)
#define ROPEWALK_FORTRAN_ENTRIES(E)                                                                \
  ROPEWALK_FORTRAN_FUNCTIONS(ROPEWALK_FORTRAN_NAMES, E)                                            \
  ROPEWALK_FORTRAN_MANGLED(E, Alloc_mem, alloc_mem_cptr, ALLOC_MEM_CPTR, (Bytes, Info, Address))

// N(symbol): functions that make windows. They are MPI's alone: the first call is noted, and leads
// there with its arguments as they are. Names with `large` and `f08ts` are MPICH's.
#define ROPEWALK_FORTRAN_WINDOW(N, name, NAME)                                                     \
  N(mpi_##name##_)                                                                                 \
  N(mpi_##name##__)                                                                                \
  N(mpi_##name)                                                                                    \
  N(MPI_##NAME)
#define ROPEWALK_FORTRAN_WINDOWS(N)                                                                \
  ROPEWALK_FORTRAN_WINDOW(N, win_create, WIN_CREATE)                                               \
  ROPEWALK_FORTRAN_WINDOW(N, win_create_dynamic, WIN_CREATE_DYNAMIC)                               \
  ROPEWALK_FORTRAN_WINDOW(N, win_allocate, WIN_ALLOCATE)                                           \
  ROPEWALK_FORTRAN_WINDOW(N, win_allocate_cptr, WIN_ALLOCATE_CPTR)                                 \
  ROPEWALK_FORTRAN_WINDOW(N, win_allocate_shared, WIN_ALLOCATE_SHARED)                             \
  ROPEWALK_FORTRAN_WINDOW(N, win_allocate_shared_cptr, WIN_ALLOCATE_SHARED_CPTR)                   \
  N(mpi_win_create_f08_)                                                                           \
  N(mpi_win_create_f08ts_)                                                                         \
  N(mpi_win_create_f08ts_large_)                                                                   \
  N(mpi_win_create_dynamic_f08_)                                                                   \
  N(mpi_win_allocate_f08_)                                                                         \
  N(mpi_win_allocate_f08_large_)                                                                   \
  N(mpi_win_allocate_shared_f08_)                                                                  \
  N(mpi_win_allocate_shared_f08_large_)
// clang-format on

namespace ropewalk::preload::serve {

// With arrays of Fortran's handles, whose length the communicator says.
int Alltoallw_fortran(const void*, const int*, const int*, const int* types, void*, const int*,
                      const int*, const int* receive_types, int comm);
int Neighbor_alltoallw_fortran(const void*, const int*, const Count*, const int* types, void*,
                               const int*, const Count*, const int* receive_types, int comm);
int Ialltoallw_fortran(const void*, const int*, const int*, const int* types, void*, const int*,
                       const int*, const int* receive_types, int comm, void* request);
int Ineighbor_alltoallw_fortran(const void*, const int*, const Count*, const int* types, void*,
                                const int*, const Count*, const int* receive_types, int comm,
                                void* request);

}  // namespace ropewalk::preload::serve

namespace ropewalk::preload::fortran {

struct Entry {
  const char* name;
  void* converter;  // takes Fortran's arguments, calls serve::X; null: the function makes a window
  bool f08;
  bool integers;  // among the arguments, besides the error code
  bool buffers;   // among the arguments
};
extern const Entry entries[];  // ROPEWALK_FORTRAN_ENTRIES, then ROPEWALK_FORTRAN_WINDOWS

// What the converters have to know of this MPI.
enum class Binding { none, ready, wide_integers };
// Local. To be asked after MPI_Init, before a converter is called. `none` where there is no
// Fortran, or not all of it can be found; with wide_integers (-fdefault-integer-8), only converters
// of functions without integers may be called.
Binding binding() noexcept;

}  // namespace ropewalk::preload::fortran
