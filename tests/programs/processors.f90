! The threads of an OpenMP program in Fortran: one second on one thread, then one on those of OMP_NUM_THREADS.
! Expect, of each rank: `used U processors by its own clock`, the processor time that Fortran counts for the process
! by the time that has passed; gyan says the same.
program processors
  use mpi
  implicit none
  integer :: ierr
  integer(kind=8) :: begun, ended, rate
  real(kind=8) :: from, to
  call MPI_Init(ierr)
  call cpu_time(from)
  call system_clock(begun, rate)
  call spin(begun + rate)
  !$omp parallel
  call spin(begun + 2 * rate)
  !$omp end parallel
  call cpu_time(to)
  call system_clock(ended)
  print '(a, f8.4, a)', 'used ', (to - from) * real(rate, 8) / real(ended - begun, 8), &
    ' processors by its own clock'
  call MPI_Finalize(ierr)
contains
  subroutine spin(until)
    integer(kind=8), intent(in) :: until
    integer(kind=8) :: now
    do
      call system_clock(now)
      if (now >= until) exit
    end do
  end subroutine
end program
