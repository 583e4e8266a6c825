! Every reduction against sums made here.
#include "handles.inc"

module reductions
  use binding
  implicit none
contains

  subroutine check_reductions(g, n)
    type(group), intent(in) :: g
    integer, intent(in) :: n
    call check_reduce(g, n)
    call check_allreduce(g, n)
    call check_scans(g, n)
    call check_reduce_scatter(g, n)
    call check_types(g, n)
  end subroutine

  subroutine check_reduce(g, n)
    type(group), intent(in) :: g
    integer, intent(in) :: n
    integer :: to(n), unused(1), root, error
    do root = 0, g%size - 1
      to = -1
      call MPI_Reduce(values(g%rank, n, 0), to, n, MPI_INTEGER, MPI_SUM, root, g%comm, error)
      call check('reduce', error, g%rank /= root .or. all(to == sums(g%size - 1, n, 0)))
      if (root > 0 .and. n > 100) cycle  ! MPICH 4.0.2 crashes
      to = values(g%rank, n, root)
      if (g%rank == root) then
        call MPI_Reduce(MPI_IN_PLACE, to, n, MPI_INTEGER, MPI_SUM, root, g%comm, error)
      else
        call MPI_Reduce(to, unused, n, MPI_INTEGER, MPI_SUM, root, g%comm, error)
      end if
      call check('reduce in place', error, g%rank /= root .or. all(to == sums(g%size - 1, n, root)))
    end do
  end subroutine

  subroutine check_allreduce(g, n)
    type(group), intent(in) :: g
    integer, intent(in) :: n
    integer :: to(n), error
    real(real8) :: reals(n)
    to = -1
    call MPI_Allreduce(values(g%rank, n, 0), to, n, MPI_INTEGER, MPI_SUM, g%comm, error)
    call check('allreduce', error, all(to == sums(g%size - 1, n, 0)))
    reals = values(g%rank, n, 3)
    call MPI_Allreduce(MPI_IN_PLACE, reals, n, MPI_DOUBLE_PRECISION, MPI_SUM, g%comm, error)
    call check('allreduce in place', error, all(nint(reals) == sums(g%size - 1, n, 3)))
  end subroutine

  subroutine check_scans(g, n)
    type(group), intent(in) :: g
    integer, intent(in) :: n
    integer :: to(n), error
    call MPI_Scan(values(g%rank, n, 0), to, n, MPI_INTEGER, MPI_SUM, g%comm, error)
    call check('scan', error, all(to == sums(g%rank, n, 0)))
    to = values(g%rank, n, 5)
    call MPI_Scan(MPI_IN_PLACE, to, n, MPI_INTEGER, MPI_SUM, g%comm, error)
    call check('scan in place', error, all(to == sums(g%rank, n, 5)))
    call MPI_Exscan(values(g%rank, n, 0), to, n, MPI_INTEGER, MPI_SUM, g%comm, error)
    call check('exscan', error, g%rank == 0 .or. all(to == sums(g%rank - 1, n, 0)))
    to = values(g%rank, n, 5)
    call MPI_Exscan(MPI_IN_PLACE, to, n, MPI_INTEGER, MPI_SUM, g%comm, error)
    call check('exscan in place', error, g%rank == 0 .or. all(to == sums(g%rank - 1, n, 5)))
  end subroutine

  subroutine check_reduce_scatter(g, n)
    type(group), intent(in) :: g
    integer, intent(in) :: n
    integer :: from(n * g%size), counts(g%size), to(n), first, error, r
    from = values(g%rank, n * g%size, 0)
    first = n * g%rank
    to = -1
    call MPI_Reduce_scatter_block(from, to, n, MPI_INTEGER, MPI_SUM, g%comm, error)
    call check('reduce_scatter_block', error, all(to == sums(g%size - 1, n, first)))
    call MPI_Reduce_scatter_block(MPI_IN_PLACE, from, n, MPI_INTEGER, MPI_SUM, g%comm, error)
    call check('reduce_scatter_block in place', error, all(from(:n) == sums(g%size - 1, n, first)))
    counts = [(min(r, n), r = 1, g%size)]
    first = sum(counts(:g%rank))
    associate (mine => counts(g%rank + 1))
      from = values(g%rank, n * g%size, 0)
      call MPI_Reduce_scatter(from, to, counts, MPI_INTEGER, MPI_SUM, g%comm, error)
      call check('reduce_scatter', error, all(to(:mine) == sums(g%size - 1, mine, first)))
      call MPI_Reduce_scatter(MPI_IN_PLACE, from, counts, MPI_INTEGER, MPI_SUM, g%comm, error)
      call check('reduce_scatter in place', error, all(from(:mine) == sums(g%size - 1, mine, first)))
    end associate
  end subroutine

  ! Fortran's own types and operations, and one of the user's.
  subroutine check_types(g, n)
    type(group), intent(in) :: g
    integer, intent(in) :: n
    logical :: flags(n)
    complex(real8) :: numbers(n)
    integer :: pairs(2, n), maps(2, n), expected(2), error, i, r
    DATATYPE :: map
    OP :: compose
    flags = [(mod(i, g%size + 1) /= g%rank, i = 1, n)]
    call MPI_Allreduce(MPI_IN_PLACE, flags, n, MPI_LOGICAL, MPI_LAND, g%comm, error)
    call check('logical', error, all(flags .eqv. [(mod(i, g%size + 1) == g%size, i = 1, n)]))
    numbers = cmplx(values(g%rank, n, 0), -values(g%rank, n, 1), real8)
    call MPI_Allreduce(MPI_IN_PLACE, numbers, n, MPI_DOUBLE_COMPLEX, MPI_SUM, g%comm, error)
    call check('complex', error, all(nint(real(numbers)) == sums(g%size - 1, n, 0)) .and. &
               all(nint(aimag(numbers)) == -sums(g%size - 1, n, 1)))
    pairs(1, :) = [(mod(i + g%rank, g%size), i = 1, n)]
    pairs(2, :) = g%rank
    call MPI_Allreduce(MPI_IN_PLACE, pairs, n, MPI_2INTEGER, MPI_MAXLOC, g%comm, error)
    call check('maxloc', error, all(pairs(1, :) == g%size - 1) .and. &
               all(pairs(2, :) == [(modulo(g%size - 1 - i, g%size), i = 1, n)]))
    ! Affine maps modulo 97, composed in the order of the ranks.
    call MPI_Type_contiguous(2, MPI_INTEGER, map, error)
    call MPI_Type_commit(map, error)
    call MPI_Op_create(compose_maps, .false., compose, error)
    maps(1, :) = 2 + g%rank
    maps(2, :) = [(g%rank + i, i = 1, n)]
    call MPI_Allreduce(MPI_IN_PLACE, maps, n, map, compose, g%comm, error)
    do i = 1, n
      expected = [2, i]
      do r = 1, g%size - 1
        expected = composed(expected, [2 + r, r + i])
      end do
      if (any(maps(:, i) /= expected)) call check('user operation', error, .false.)
    end do
    call MPI_Op_free(compose, error)
    call MPI_Type_free(map, error)
  end subroutine

  pure function composed(first, second) result(both)
    integer, intent(in) :: first(2), second(2)
    integer :: both(2)
    both = [mod(first(1) * second(1), 97), mod(second(1) * first(2) + second(2), 97)]
  end function

#if BINDING == 3
  subroutine compose_maps(first, second, count, datatype)
    type(c_ptr), value :: first, second
    integer :: count
    type(MPI_Datatype) :: datatype
    integer, pointer :: a(:, :), b(:, :)
    integer :: i
    call c_f_pointer(first, a, [2, count])
    call c_f_pointer(second, b, [2, count])
#else
  subroutine compose_maps(a, b, count, datatype)
    integer :: count, datatype, i
    integer :: a(2, count), b(2, count)
#endif
    do i = 1, count
      b(:, i) = composed(a(:, i), b(:, i))
    end do
  end subroutine

end module
