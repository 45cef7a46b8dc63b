! Receives that are called while messages wait, as in unexpected.c: two ranks, k messages and a last one
! for each call site. Compiled once for each binding, with BINDING_MPIF, BINDING_MPI or BINDING_F08.
! Rank 0 writes to truth.0, for each call of a receive:
!   <site> <MPI function> <line> <tag> <communicator> <waiting> -
! Expect: <waiting> messages at each.
#ifdef BINDING_F08
#define HANDLE(name) type(name)
#define STATUS type(MPI_Status)
#else
#define HANDLE(name) integer
#define STATUS integer, dimension(MPI_STATUS_SIZE)
#endif
program unexpected
#ifdef BINDING_F08
  use mpi_f08
#endif
#ifdef BINDING_MPI
  use mpi
#endif
  implicit none
#ifdef BINDING_MPIF
  include 'mpif.h'
#endif
  integer, parameter :: tag = 17, last = 18, go = 19, all = 1, any = 2, later = 3
  integer :: rank, ierr, truth = 10
  HANDLE(MPI_Comm) :: workers
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  if (rank == 0) open (truth, file='truth.0', status='replace')
  call MPI_Comm_dup(MPI_COMM_WORLD, workers, ierr)
  call MPI_Comm_set_name(workers, 'workers', ierr)
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  call work(all, 11, MPI_COMM_WORLD, 'MPI_COMM_WORLD')
  call work(any, 6, workers, 'workers')
  call work(later, 8, workers, 'workers')
  if (rank == 0) close (truth)
  call MPI_Comm_free(workers, ierr)
  call MPI_Finalize(ierr)
contains

  ! Before a receive that is called on this line.
  subroutine note(site, what, line, the_tag, name, waiting)
    character(len=*), intent(in) :: site, what, name
    integer, intent(in) :: line, the_tag, waiting
    write (truth, '(4A,2(I0,A),2A,I0,A)') site, ' ', what, ' ', line, ' ', the_tag, ' ', name, ' ', waiting, ' -'
  end subroutine

  subroutine receive_all(k, comm, name)
    integer, intent(in) :: k
    HANDLE(MPI_Comm), intent(in) :: comm
    character(len=*), intent(in) :: name
    integer :: i, x
    STATUS :: state
    do i = 1, k
      call note('receive_all', 'MPI_Recv', __LINE__ + 1, tag, name, k - i + 2)
      call MPI_Recv(x, 1, MPI_INTEGER, 1, tag, comm, state, ierr)
    end do
  end subroutine

  subroutine receive_any(k, comm, name)
    integer, intent(in) :: k
    HANDLE(MPI_Comm), intent(in) :: comm
    character(len=*), intent(in) :: name
    integer :: i, x
    STATUS :: state
    do i = 1, k
      call note('receive_any', 'MPI_Recv', __LINE__ + 1, tag, name, k - i + 2)
      call MPI_Recv(x, 1, MPI_INTEGER, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, state, ierr)
    end do
  end subroutine

  subroutine receive_later(k, comm, name)
    integer, intent(in) :: k
    HANDLE(MPI_Comm), intent(in) :: comm
    character(len=*), intent(in) :: name
    integer :: i
    integer, save, asynchronous :: x(64)
    HANDLE(MPI_Request) :: requests(64)
    do i = 1, k
      call note('receive_later', 'MPI_Irecv', __LINE__ + 1, tag, name, k - i + 2)
      call MPI_Irecv(x(i), 1, MPI_INTEGER, 1, tag, comm, requests(i), ierr)
    end do
    call MPI_Waitall(k, requests, MPI_STATUSES_IGNORE, ierr)
  end subroutine

  subroutine receive_last(comm, name)
    HANDLE(MPI_Comm), intent(in) :: comm
    character(len=*), intent(in) :: name
    integer :: x
    call note('receive_last', 'MPI_Recv', __LINE__ + 1, last, name, 1)
    call MPI_Recv(x, 1, MPI_INTEGER, 1, last, comm, MPI_STATUS_IGNORE, ierr)
  end subroutine

  subroutine work(how, k, comm, name)
    integer, intent(in) :: how, k
    HANDLE(MPI_Comm), intent(in) :: comm
    character(len=*), intent(in) :: name
    integer :: i, x
    if (rank == 1) then
      do i = 1, k
        call MPI_Send(i, 1, MPI_INTEGER, 0, tag, comm, ierr)
      end do
      call MPI_Send(k, 1, MPI_INTEGER, 0, last, comm, ierr)
      call MPI_Recv(x, 1, MPI_INTEGER, 0, go, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
      return
    end if
    call MPI_Probe(1, last, comm, MPI_STATUS_IGNORE, ierr)
    select case (how)
    case (all)
      call receive_all(k, comm, name)
    case (any)
      call receive_any(k, comm, name)
    case (later)
      call receive_later(k, comm, name)
    end select
    call receive_last(comm, name)
    call MPI_Send(rank, 1, MPI_INTEGER, 1, go, MPI_COMM_WORLD, ierr)
  end subroutine
end program
