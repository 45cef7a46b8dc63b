! As hybrid.c, in Fortran: two regions, of which one calls MPI. GCC's code runs on LLVM's runtime, which has its functions too.
module sleeping
    use, intrinsic :: iso_c_binding, only: c_int
    implicit none
    interface
        integer(c_int) function usleep(us) bind(c)
            import :: c_int
            integer(c_int), value :: us
        end function
    end interface
end module

program hybrid
    use, intrinsic :: iso_c_binding, only: c_int
    use mpi
    use omp_lib
    use sleeping
    implicit none
    integer, parameter :: threads = 64
    type region
        double precision :: time = 0, work = 0, most_work = 0, in_mpi = 0
    end type
    type(region) :: uneven, with_mpi
    double precision :: from, begun, mark, elapsed, serial_in_mpi, work(threads), in_mpi(threads)
    integer :: rank, level, error, round, unit
    integer(c_int) :: slept
    character(len=32) :: name

    from = omp_get_wtime()
    call MPI_Init_thread(MPI_THREAD_FUNNELED, level, error)
    serial_in_mpi = omp_get_wtime() - from
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
    do round = 1, 3
        slept = usleep(40000_c_int)
        call enter()
        !$omp parallel
        call works(20 + 40 * omp_get_thread_num())
        !$omp end parallel
        call leave(uneven)
        slept = usleep(int(merge(50000, 10000, rank == 0), c_int))
        mark = omp_get_wtime()
        call MPI_Barrier(MPI_COMM_WORLD, error)
        serial_in_mpi = serial_in_mpi + omp_get_wtime() - mark
        call enter()
        !$omp parallel
        call works(10 + 30 * rank)
        !$omp master
        call waits()
        !$omp end master
        !$omp end parallel
        call leave(with_mpi)
    end do
    elapsed = omp_get_wtime() - from
    call MPI_Finalize(error)
    write (name, '(a, i0)') 'truth.', rank
    open (newunit=unit, file=name, action='write')
    write (unit, '(a, 1x, f0.6, 1x, i0, 2(1x, f0.6))') 'run', elapsed, omp_get_max_threads(), &
        elapsed - uneven%time - with_mpi%time - serial_in_mpi, serial_in_mpi
    write (unit, '(a, 2(1x, i0), 4(1x, f0.6))') 'region', 36, 3, uneven
    write (unit, '(a, 2(1x, i0), 4(1x, f0.6))') 'region', 45, 3, with_mpi
    close (unit)

contains

    subroutine enter()
        work = 0
        in_mpi = 0
        begun = omp_get_wtime()
    end subroutine

    subroutine leave(where)
        type(region), intent(inout) :: where
        where%time = where%time + omp_get_wtime() - begun
        where%work = where%work + sum(work)
        where%most_work = where%most_work + maxval(work)
        where%in_mpi = where%in_mpi + sum(in_mpi)
    end subroutine

    subroutine works(ms)
        integer, intent(in) :: ms
        double precision :: before
        integer(c_int) :: status
        before = omp_get_wtime()
        status = usleep(int(1000 * ms, c_int))
        associate (own => work(omp_get_thread_num() + 1))
            own = own + omp_get_wtime() - before
        end associate
    end subroutine

    subroutine waits()
        double precision :: before
        integer :: status
        before = omp_get_wtime()
        call MPI_Barrier(MPI_COMM_WORLD, status)
        in_mpi(1) = in_mpi(1) + omp_get_wtime() - before
    end subroutine
end program
