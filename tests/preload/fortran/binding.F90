! The Fortran binding under test: BINDING is 1 for mpif.h, 2 for `use mpi`, 3 for `use mpi_f08`. And
! what every check needs: ranks of a communicator, values to send, failures counted.
#include "handles.inc"

module binding
#if BINDING == 3
  use mpi_f08
#elif BINDING == 2
  use mpi
#endif
  use, intrinsic :: iso_c_binding
  implicit none
#if BINDING == 1
  include 'mpif.h'
#endif
  integer, parameter :: real8 = kind(1.0d0)
  integer :: failures = 0

  type :: group  ! a communicator, and who this rank is in it
    COMM :: comm
    integer :: rank, size
  end type

contains

  function group_of(comm) result(g)
    COMM, intent(in) :: comm
    type(group) :: g
    integer :: error
    g%comm = comm
    call MPI_Comm_rank(comm, g%rank, error)
    call MPI_Comm_size(comm, g%size, error)
    ! The drop-in takes part from a communicator's second collective on.
    call MPI_Barrier(comm, error)
    call MPI_Barrier(comm, error)
  end function

  ! What a rank sends at a place: exact in any type, and in any order of a sum.
  elemental integer function value(rank, place)
    integer, intent(in) :: rank, place
    value = 1000 * (rank + 1) + mod(7 * place, 101)
  end function

  pure function values(rank, n, first) result(v)
    integer, intent(in) :: rank, n, first
    integer :: v(n), i
    v = [(value(rank, first + i), i = 1, n)]
  end function

  ! The sum of the values of ranks 0 to last.
  pure function sums(last, n, first) result(v)
    integer, intent(in) :: last, n, first
    integer :: v(n), r
    v = 0
    do r = 0, last
      v = v + values(r, n, first)
    end do
  end function

  subroutine check(what, error, ok)
    character(*), intent(in) :: what
    integer, intent(in) :: error
    logical, intent(in) :: ok
    if (error == MPI_SUCCESS .and. ok) return
    failures = failures + 1
    if (failures < 20) print '(a,a,i0)', what, ': wrong, error code ', error
  end subroutine

end module
