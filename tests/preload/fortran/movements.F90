! Every movement of data against what it has to bring.
#include "handles.inc"

module movements
  use binding
  implicit none
contains

  subroutine check_movements(g, n)
    type(group), intent(in) :: g
    integer, intent(in) :: n
    integer :: root
    do root = 0, g%size - 1
      call check_bcast(g, n, root)
      call check_gather(g, n, root)
      call check_scatter(g, n, root)
    end do
    call check_allgather(g, n)
    call check_alltoall(g, n)
    call check_characters(g)
  end subroutine

  subroutine check_bcast(g, n, root)
    type(group), intent(in) :: g
    integer, intent(in) :: n, root
    integer :: data(n), rows(3, n), error
    DATATYPE :: row
    data = values(g%rank, n, 0)
    call MPI_Bcast(data, n, MPI_INTEGER, root, g%comm, error)
    call check('bcast', error, all(data == values(root, n, 0)))
    ! The middle row of a matrix: a strided type.
    rows = g%rank
    rows(2, :) = values(g%rank, n, 4)
    call MPI_Type_vector(n, 1, 3, MPI_INTEGER, row, error)
    call MPI_Type_commit(row, error)
    call MPI_Bcast(rows(2, min(1, n)), 1, row, root, g%comm, error)
    call MPI_Type_free(row, error)
    call check('bcast of a vector', error, all(rows(2, :) == values(root, n, 4)) .and. &
               all(rows(1, :) == g%rank) .and. all(rows(3, :) == g%rank))
    call check_bottom(g, n, root)
  end subroutine

  ! A type that holds its address, and MPI_BOTTOM as the buffer.
  subroutine check_bottom(g, n, root)
    type(group), intent(in) :: g
    integer, intent(in) :: n, root
    integer, target :: data(n + 1)
    integer(MPI_ADDRESS_KIND) :: places(1)
    integer :: error
    DATATYPE :: absolute
    data = values(g%rank, n + 1, 9)
    call MPI_Get_address(data, places(1), error)
    call MPI_Type_create_hindexed(1, [n + 1], places, MPI_INTEGER, absolute, error)
    call MPI_Type_commit(absolute, error)
    call MPI_Bcast(MPI_BOTTOM, 1, absolute, root, g%comm, error)
    call MPI_Type_free(absolute, error)
    call MPI_Get_address(data, places(1), error)  ! the compiler cannot know that data has changed
    call check('bcast from the bottom', error, all(data == values(root, n + 1, 9)))
  end subroutine

  ! Rank r gives or gets min(r + 1, n) values, with a gap of one before each block.
  subroutine blocks(g, n, counts, places)
    type(group), intent(in) :: g
    integer, intent(in) :: n
    integer, intent(out) :: counts(g%size), places(g%size)
    integer :: r
    counts = [(min(r, n), r = 1, g%size)]
    places = [(sum(counts(:r - 1)) + r, r = 1, g%size)]
  end subroutine

  ! Whether the block of every rank holds what that rank sent, and the gaps what was there before.
  logical function arrived(g, data, counts, places)
    type(group), intent(in) :: g
    integer, intent(in) :: data(:), counts(g%size), places(g%size)
    integer :: r
    arrived = data(1) == -1
    do r = 1, g%size
      associate (first => places(r) + 1, last => places(r) + counts(r))
        arrived = arrived .and. all(data(first:last) == values(r - 1, counts(r), 0))
        arrived = arrived .and. data(last + 1) == -1
      end associate
    end do
  end function

  subroutine check_gather(g, n, root)
    type(group), intent(in) :: g
    integer, intent(in) :: n, root
    integer :: to(n, 0:g%size - 1), some((n + 1) * g%size + 1), counts(g%size), places(g%size)
    integer :: error, r
    to = -1
    call MPI_Gather(values(g%rank, n, 0), n, MPI_INTEGER, to, n, MPI_INTEGER, root, g%comm, error)
    call check('gather', error, g%rank /= root .or. &
               all([(to(:, r) == values(r, n, 0), r = 0, g%size - 1)]))
    to = -1
    to(:, g%rank) = values(g%rank, n, 2)
    if (g%rank == root) then
      call MPI_Gather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, to, n, MPI_INTEGER, root, g%comm, error)
    else
      call MPI_Gather(to(:, g%rank), n, MPI_INTEGER, MPI_BOTTOM, 0, MPI_DATATYPE_NULL, root, &
                      g%comm, error)
    end if
    call check('gather in place', error, g%rank /= root .or. &
               all([(to(:, r) == values(r, n, 2), r = 0, g%size - 1)]))
    call blocks(g, n, counts, places)
    some = -1
    call MPI_Gatherv(values(g%rank, n, 0), counts(g%rank + 1), MPI_INTEGER, some, counts, places, &
                     MPI_INTEGER, root, g%comm, error)
    call check('gatherv', error, g%rank /= root .or. arrived(g, some, counts, places))
  end subroutine

  subroutine check_scatter(g, n, root)
    type(group), intent(in) :: g
    integer, intent(in) :: n, root
    integer :: from(n * g%size), to(n), some((n + 1) * g%size + 1)
    integer :: counts(g%size), places(g%size), error, r
    from = values(root, n * g%size, 0)
    to = -1
    call MPI_Scatter(from, n, MPI_INTEGER, to, n, MPI_INTEGER, root, g%comm, error)
    call check('scatter', error, all(to == values(root, n, n * g%rank)))
    to = -1
    if (g%rank == root) then
      call MPI_Scatter(from, n, MPI_INTEGER, MPI_IN_PLACE, n, MPI_INTEGER, root, g%comm, error)
    else
      call MPI_Scatter(MPI_BOTTOM, 0, MPI_DATATYPE_NULL, to, n, MPI_INTEGER, root, g%comm, error)
    end if
    call check('scatter in place', error, g%rank == root .or. all(to == values(root, n, n * g%rank)))
    call blocks(g, n, counts, places)
    do r = 1, g%size
      some(places(r) + 1:places(r) + counts(r)) = values(r - 1, counts(r), 0)
    end do
    to = -1
    call MPI_Scatterv(some, counts, places, MPI_INTEGER, to, counts(g%rank + 1), MPI_INTEGER, root, &
                      g%comm, error)
    associate (mine => counts(g%rank + 1))
      call check('scatterv', error, all(to(:mine) == values(g%rank, mine, 0)) .and. &
                 all(to(mine + 1:) == -1))
    end associate
  end subroutine

  subroutine check_allgather(g, n)
    type(group), intent(in) :: g
    integer, intent(in) :: n
    integer :: to(n, 0:g%size - 1), some((n + 1) * g%size + 1), counts(g%size), places(g%size)
    integer :: error, r
    to = -1
    call MPI_Allgather(values(g%rank, n, 0), n, MPI_INTEGER, to, n, MPI_INTEGER, g%comm, error)
    call check('allgather', error, all([(to(:, r) == values(r, n, 0), r = 0, g%size - 1)]))
    to = -1
    to(:, g%rank) = values(g%rank, n, 2)
    call MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, to, n, MPI_INTEGER, g%comm, error)
    call check('allgather in place', error, all([(to(:, r) == values(r, n, 2), r = 0, g%size - 1)]))
    if (g%size == 1) return  ! MPICH 4.0 takes no notice of a single rank's displacement
    call blocks(g, n, counts, places)
    some = -1
    call MPI_Allgatherv(values(g%rank, n, 0), counts(g%rank + 1), MPI_INTEGER, some, counts, places, &
                        MPI_INTEGER, g%comm, error)
    call check('allgatherv', error, arrived(g, some, counts, places))
  end subroutine

  subroutine check_alltoall(g, n)
    type(group), intent(in) :: g
    integer, intent(in) :: n
    integer, dimension(n, 0:g%size - 1) :: from, to, expected
    integer, dimension(g%size) :: counts, places
    integer :: error, r
    do r = 0, g%size - 1
      from(:, r) = values(g%rank, n, r)
      expected(:, r) = values(r, n, g%rank)
    end do
    to = -1
    call MPI_Alltoall(from, n, MPI_INTEGER, to, n, MPI_INTEGER, g%comm, error)
    call check('alltoall', error, all(to == expected))
    to = from
    call MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, to, n, MPI_INTEGER, g%comm, error)
    call check('alltoall in place', error, all(to == expected))
    ! All but the first of each block, into the blocks in reverse order.
    counts = max(0, n - 1)
    places = [(n * r + min(1, n), r = 0, g%size - 1)]
    to = -1
    call MPI_Alltoallv(from, counts, places, MPI_INTEGER, to, counts, places(g%size:1:-1), &
                       MPI_INTEGER, g%comm, error)
    call check('alltoallv', error, all(to(2:, :) == expected(2:, g%size - 1:0:-1)) .and. &
               all(to(:min(1, n), :) == -1))
  end subroutine

  ! Characters come with a hidden length behind the arguments.
  subroutine check_characters(g)
    type(group), intent(in) :: g
    character(12) :: word
    character(12) :: words(g%size)
    integer :: error, r
    write (word, '(a,i0)') 'rank ', g%rank
    call MPI_Allgather(word, 12, MPI_CHARACTER, words, 12, MPI_CHARACTER, g%comm, error)
    do r = 0, g%size - 1
      write (word, '(a,i0)') 'rank ', r
      call check('characters', error, words(r + 1) == word)
    end do
    call MPI_Bcast(word, len(word), MPI_CHARACTER, 0, g%comm, error)
    call check('bcast of characters', error, word == words(g%size))
  end subroutine

end module
