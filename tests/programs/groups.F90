! Sends messages over duplicates, a grid and communicators with other orders of ranks; asks MPI_Group_translate_ranks who
! that is in the world. BINDING_MPI for `use mpi`, BINDING_F08 for `use mpi_f08`. 4 ranks.
! Expect: in truth.<rank>, lines `message <rank> <number> <bytes>`, which the profile equals.
program groups
#ifdef BINDING_F08
  use mpi_f08
  implicit none
  type(MPI_Comm) :: dup, later, split, like, grid, half, inter, inter_dup
  type(MPI_Request) :: request
#else
  use mpi
  implicit none
  integer :: dup, later, split, like, grid, half, inter, inter_dup, request
#endif
  integer :: rank, size, ierr, round, messages(0:3)
  character(len=16) :: file
  messages = 0
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, size, ierr)
  do round = 1, 3
    call MPI_Comm_dup(MPI_COMM_WORLD, dup, ierr)
    call send_by(dup, 1)
    call MPI_Comm_idup(dup, later, request, ierr)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
    call MPI_Comm_free(dup, ierr)
    call send_by(later, 2)
    call MPI_Cart_create(later, 1, [size], [.true.], .false., grid, ierr)
    call send_by(grid, 3)
    call MPI_Comm_free(grid, ierr)
    call MPI_Comm_split(later, 0, mod(2 * size - rank + round, size), split, ierr)
    call send_by(split, 1)
    call MPI_Comm_dup(split, like, ierr)
    call MPI_Comm_free(split, ierr)
    call send_by(like, 1)
    call send_by(like, 2)
    call MPI_Comm_idup(like, split, request, ierr)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
    call send_by(split, 3)
    call MPI_Comm_free(split, ierr)
    call MPI_Comm_free(like, ierr)
    call MPI_Comm_split(later, mod(rank, 2), -rank, half, ierr)
    call MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 3 - mod(rank, 2), 9, inter, ierr)
    call send_by(inter, 0)
    call MPI_Comm_dup(inter, inter_dup, ierr)
    call MPI_Comm_free(inter, ierr)
    call send_by(inter_dup, 0)
    call MPI_Comm_free(inter_dup, ierr)
    call MPI_Comm_free(half, ierr)
    call MPI_Comm_free(later, ierr)
  end do
  write (file, '(a, i0)') 'truth.', rank
  open (10, file=trim(file))
  do round = 0, size - 1
    if (messages(round) > 0) then
      write (10, '(a, i0, a, i0, a, i0)') 'message ', round, ' ', messages(round), ' ', 4 * messages(round)
    end if
  end do
  close (10)
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  call MPI_Finalize(ierr)

contains

  ! To the rank that comes `by` after this one, in the other group of an intercommunicator.
  subroutine send_by(comm, by)
    integer, intent(in) :: by
#ifdef BINDING_F08
    type(MPI_Comm), intent(in) :: comm
    type(MPI_Group) :: group, world
#else
    integer, intent(in) :: comm
    integer :: group, world
#endif
    integer :: own, peers, to(1), from, there(1), sent, received
    logical :: is_inter
    call MPI_Comm_rank(comm, own, ierr)
    call MPI_Comm_size(comm, peers, ierr)
    call MPI_Comm_test_inter(comm, is_inter, ierr)
    if (is_inter) then
      call MPI_Comm_remote_group(comm, group, ierr)
    else
      call MPI_Comm_group(comm, group, ierr)
    end if
    to = mod(own + by, peers)
    from = mod(own + peers - by, peers)
    sent = by
    call MPI_Sendrecv(sent, 1, MPI_INTEGER, to(1), 0, received, 1, MPI_INTEGER, from, 0, comm, &
                      MPI_STATUS_IGNORE, ierr)
    call MPI_Comm_group(MPI_COMM_WORLD, world, ierr)
    call MPI_Group_translate_ranks(group, 1, to, world, there, ierr)
    messages(there(1)) = messages(there(1)) + 1
    call MPI_Group_free(group, ierr)
    call MPI_Group_free(world, ierr)
  end subroutine send_by
end program groups
