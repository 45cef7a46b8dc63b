! Phases by gyan.f90 and by MPI_Pcontrol, in Fortran.
! Expect, on each rank: MPI_Recv 2 outside all phases, 6 in "step", 9 in "step/exchange" (3 entries
! each), 4 in "level 3", 5 in "off"; without gyan the same output.
program phases
  use mpi
  use gyan
  implicit none
  integer :: ierr, rank, step
  character(len=20) :: name = 'exchange'
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call receive(1)
  do step = 1, 3
    call gyan_phase_begin('step')
    call receive(2)
    ! Trailing blanks do not belong to it.
    call gyan_phase_begin(name)
    call receive(3)
    call gyan_phase_end()
    call gyan_phase_end()
  end do
  call MPI_Pcontrol(3)
  call receive(4)
  call MPI_Pcontrol(0)
  call receive(5)
  call MPI_Pcontrol(1)
  call receive(1)
  write (*, '(A,I2)') 'rank', rank
  call MPI_Finalize(ierr)

contains

  subroutine receive(n)
    integer, intent(in) :: n
    integer :: i, x
    do i = 1, n
      call MPI_Recv(x, 1, MPI_INTEGER, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
    end do
  end subroutine

end program phases
