! Each of four ranks makes windows of its own by another of the four functions, and by no other, as
! MPI alone would: what MPI refuses (Open MPI 4.1 some windows of one rank) is refused.
#include "handles.inc"

program windows
  use binding
  implicit none
  integer, parameter :: n = 8
  integer(MPI_ADDRESS_KIND), parameter :: bytes = 4 * n
  type(group) :: world
  WINDOW :: window
  integer, asynchronous :: memory(n)
  integer :: error, plain
#if BINDING == 1
  integer(MPI_ADDRESS_KIND) :: place
#else
  type(c_ptr) :: place
#endif
  call MPI_Init(error)
  world = group_of(MPI_COMM_WORLD)
  call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN, error)
  select case (world%rank)
  case (0)
    call PMPI_Win_create(memory, bytes, 4, MPI_INFO_NULL, MPI_COMM_SELF, window, plain)
    call free(plain)
    call MPI_Win_create(memory, bytes, 4, MPI_INFO_NULL, MPI_COMM_SELF, window, error)
  case (1)
    call PMPI_Win_allocate(bytes, 4, MPI_INFO_NULL, MPI_COMM_SELF, place, window, plain)
    call free(plain)
    call MPI_Win_allocate(bytes, 4, MPI_INFO_NULL, MPI_COMM_SELF, place, window, error)
  case (2)
    call PMPI_Win_allocate_shared(bytes, 4, MPI_INFO_NULL, MPI_COMM_SELF, place, window, plain)
    call free(plain)
    call MPI_Win_allocate_shared(bytes, 4, MPI_INFO_NULL, MPI_COMM_SELF, place, window, error)
  case default
    call PMPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_SELF, window, plain)
    call free(plain)
    call MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_SELF, window, error)
  end select
  call check('window', MPI_SUCCESS, (error == MPI_SUCCESS) .eqv. (plain == MPI_SUCCESS))
  call free(error)
  call MPI_Barrier(MPI_COMM_WORLD, error)
  call MPI_Finalize(error)
  if (failures /= 0) error stop 1

contains

  subroutine free(made)
    integer, intent(in) :: made
    integer :: error
    if (made == MPI_SUCCESS) call MPI_Win_free(window, error)
  end subroutine

end program
