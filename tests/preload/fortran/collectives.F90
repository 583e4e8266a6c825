! Every collective through the Fortran binding, on MPI_COMM_WORLD, parts of it and a copy of it. Ends
! with an error when any result is wrong.
#include "handles.inc"

program collectives
  use binding
  use movements
  use reductions
  implicit none
  COMM :: part, copy
  integer :: error
  call MPI_Init(error)
  call check_memory()
  call check_on(MPI_COMM_WORLD)
  call MPI_Comm_dup(MPI_COMM_WORLD, copy, error)
  call check_on(copy)
  call check_part(copy, part)
  call check_on(part)
  call MPI_Comm_free(part, error)
  call MPI_Comm_free(copy, error)
  call check_on(MPI_COMM_SELF)
  call check_error()
  call end_together()

contains

  subroutine check_on(comm)
    COMM, intent(in) :: comm
    integer, parameter :: sizes(5) = [0, 1, 5, 1000, 40000]
    type(group) :: g
    integer :: i
    g = group_of(comm)
    do i = 1, size(sizes)
      call check_movements(g, sizes(i))
      call check_reductions(g, sizes(i))
    end do
  end subroutine

  ! Every other rank, in reverse order.
  subroutine check_part(comm, part)
    COMM, intent(in) :: comm
    COMM, intent(out) :: part
    integer :: rank, error
    call MPI_Comm_rank(comm, rank, error)
    call MPI_Comm_split(comm, mod(rank, 2), -rank, part, error)
  end subroutine

  subroutine check_memory()
    integer, parameter :: n = 100000
    integer(MPI_ADDRESS_KIND), parameter :: bytes = 4 * n
    integer, pointer :: memory(:)
    integer :: error
#if BINDING == 1
    integer(MPI_ADDRESS_KIND) :: place
    type(c_ptr) :: pointer
    call MPI_Alloc_mem(bytes, MPI_INFO_NULL, place, error)
    pointer = transfer(place, pointer)
#else
    type(c_ptr) :: pointer
    call MPI_Alloc_mem(bytes, MPI_INFO_NULL, pointer, error)
#endif
    call c_f_pointer(pointer, memory, [n])
    memory = 1
    call MPI_Allreduce(MPI_IN_PLACE, memory, n, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, error)
    call check('memory', error, all(memory == 1))
    call check('arena', MPI_SUCCESS, has_arena() .neqv. is_set('ROPEWALK_DISABLE'))
    call MPI_Free_mem(memory, error)
    call check('free_mem', error, .true.)
  end subroutine

  ! Memory of MPI_Alloc_mem is the drop-in's: a file without a name, which MPI has none of.
  logical function has_arena()
    character(200) :: line
    integer :: unit, status
    has_arena = .false.
    open (newunit=unit, file='/proc/self/maps', action='read')
    do
      read (unit, '(a)', iostat=status) line
      if (status /= 0) exit
      has_arena = has_arena .or. index(line, '/memfd:ropewalk') > 0
    end do
    close (unit)
  end function

  logical function is_set(variable)
    character(*), intent(in) :: variable
    integer :: status
    call get_environment_variable(variable, status=status)
    is_set = status == 0
  end function

  ! The error comes back as a code.
  subroutine check_error()
    integer :: data(1), error
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN, error)
    call MPI_Bcast(data, -1, MPI_INTEGER, 0, MPI_COMM_WORLD, error)
    call check('error code', MPI_SUCCESS, error /= MPI_SUCCESS)
  end subroutine

  subroutine end_together()
    integer :: all_failures, error
    call MPI_Allreduce(failures, all_failures, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
#if BINDING == 3
    call MPI_Barrier(MPI_COMM_WORLD)  ! without an error code
    call MPI_Finalize()
#else
    call MPI_Finalize(error)
#endif
    if (all_failures /= 0) error stop 1
  end subroutine

end program
