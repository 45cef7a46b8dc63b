! As account.c, from Fortran: loops of MPI_Comm_rank, MPI_Wtime or MPI_Bcast.
!   usage: account_f rank|wtime|bcast CALLS
! Expect: the seconds of processor time that all calls took.
program account
  use mpi
  implicit none
  integer :: ierr, rank, i, calls
  character(len=16) :: word, loop
  double precision :: now, begun, ended
  call MPI_Init(ierr)
  call get_command_argument(1, loop)
  call get_command_argument(2, word)
  read (word, *) calls
  call cpu_time(begun)
  select case (loop)
  case ('rank')
    do i = 1, calls
      call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
    end do
  case ('wtime')
    do i = 1, calls
      now = MPI_Wtime()
    end do
  case ('bcast')
    do i = 1, calls
      call MPI_Bcast(rank, 1, MPI_INTEGER, 0, MPI_COMM_SELF, ierr)
    end do
  end select
  call cpu_time(ended)
  print '(f12.6)', ended - begun
  call MPI_Finalize(ierr)
end program
