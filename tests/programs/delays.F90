! As delays.c, by one of Fortran's bindings: MPIF_H, or mpi_f08 without it. The last rank comes late to each
! tenth of 30 calls of three functions on MPI_COMM_WORLD and a duplicate of it.
program delays
#ifdef MPIF_H
  implicit none
  include 'mpif.h'
  integer :: twin
#else
  use mpi_f08
  implicit none
  type(MPI_Comm) :: twin
#endif
  integer :: rank, ranks, ierr
  character(len=16) :: name

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  write (name, '(a, i0)') 'truth.', rank
  open (unit=7, file=name)
  call calls(MPI_COMM_WORLD, 'MPI_COMM_WORLD')
  call MPI_Comm_dup(MPI_COMM_WORLD, twin, ierr)
  call MPI_Comm_set_name(twin, 'twin', ierr)
  call calls(twin, 'twin')
  close (7)
  call MPI_Finalize(ierr)

contains

  subroutine calls(comm, name)
#ifdef MPIF_H
    integer, intent(in) :: comm
#else
    type(MPI_Comm), intent(in) :: comm
#endif
    character(len=*), intent(in) :: name
    integer(kind=8) :: times(2, 30), rate
    integer :: which, i, mine(1), all(64)
    character(len=13), parameter :: names(3) = ['MPI_Barrier  ', 'MPI_Allreduce', 'MPI_Allgather']

    mine = rank
    call system_clock(count_rate=rate)
    do which = 1, 3
      do i = 1, 30
        if (mod(i, 10) == 5 .and. rank == ranks - 1) call sleep_ms(20)
        call system_clock(times(1, i))
        select case (which)
        case (1)
          call MPI_Barrier(comm, ierr)
        case (2)
          call MPI_Allreduce(mine, all, 1, MPI_INTEGER, MPI_SUM, comm, ierr)
        case (3)
          call MPI_Allgather(mine, 1, MPI_INTEGER, all, 1, MPI_INTEGER, comm, ierr)
        end select
        call system_clock(times(2, i))
      end do
      do i = 1, 30
        write (7, '(a, 1x, a, 1x, i0, 1x, i0)') trim(names(which)), name, &
            times(:, i) * (1000000000_8 / rate)
      end do
    end do
  end subroutine

  subroutine sleep_ms(ms)
    use iso_c_binding, only: c_int
    integer, intent(in) :: ms
    interface
      integer(c_int) function usleep(us) bind(c)
        import c_int
        integer(c_int), value :: us
      end function
    end interface
    integer(c_int) :: result
    result = usleep(int(1000 * ms, c_int))
  end subroutine
end program
