! Ranks that call the same collective from different languages meet: odd ranks call C's functions.
! With F2C handles are converted by PMPI_*_f2c, without it they are the same in both.
#include "handles.inc"

program languages
  use binding
  implicit none

  interface
    integer(c_int) function c_barrier(comm) bind(C, name='MPI_Barrier')
      import
      integer(c_intptr_t), value :: comm
    end function
    integer(c_int) function c_allreduce(from, to, n, datatype, operation, comm) &
      bind(C, name='MPI_Allreduce')
      import
      type(c_ptr), value :: from, to
      integer(c_int), value :: n
      integer(c_intptr_t), value :: datatype, operation, comm
    end function
#ifdef F2C
    integer(c_intptr_t) function c_comm(handle) bind(C, name='PMPI_Comm_f2c')
      import
      integer(c_int), value :: handle
    end function
    integer(c_intptr_t) function c_type(handle) bind(C, name='PMPI_Type_f2c')
      import
      integer(c_int), value :: handle
    end function
    integer(c_intptr_t) function c_op(handle) bind(C, name='PMPI_Op_f2c')
      import
      integer(c_int), value :: handle
    end function
#endif
  end interface

  integer, target :: from(1000), to(1000)
  integer :: round, rank, size, code, error
  integer(c_intptr_t) :: world, datatype, operation
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, size, error)
#if BINDING == 3
  world = c_comm(MPI_COMM_WORLD%MPI_VAL)
  datatype = c_type(MPI_INTEGER%MPI_VAL)
  operation = c_op(MPI_SUM%MPI_VAL)
#else
  world = c_comm(MPI_COMM_WORLD)
  datatype = c_type(MPI_INTEGER)
  operation = c_op(MPI_SUM)
#endif
  do round = 1, 100
    from = values(rank, 1000, round)
    to = -1
    if (mod(rank, 2) == 1) then
      error = c_barrier(world)
      code = c_allreduce(c_loc(from), c_loc(to), 1000, datatype, operation, world)
    else
      call MPI_Barrier(MPI_COMM_WORLD, error)
      call MPI_Allreduce(from, to, 1000, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, code)
    end if
    call check('barrier', error, .true.)
    call check('allreduce', code, all(to == sums(size - 1, 1000, round)))
  end do
  call MPI_Finalize(error)
  if (failures /= 0) error stop 1

#ifndef F2C
contains

  integer(c_intptr_t) function c_comm(handle)
    integer, intent(in) :: handle
    c_comm = handle
  end function

  integer(c_intptr_t) function c_type(handle)
    integer, intent(in) :: handle
    c_type = handle
  end function

  integer(c_intptr_t) function c_op(handle)
    integer, intent(in) :: handle
    c_op = handle
  end function
#endif

end program
