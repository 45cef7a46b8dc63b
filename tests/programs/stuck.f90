! Ranks 0 and 1 receive from each other, who sends nothing; the others are in a barrier.
program stuck
    use mpi
    implicit none
    integer :: rank, x, error
    call MPI_Init(error)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
    if (rank < 2) then
        call MPI_Recv(x, 1, MPI_INTEGER, 1 - rank, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error) ! receive
    end if
    call MPI_Barrier(MPI_COMM_WORLD, error) ! barrier
    call MPI_Finalize(error)
end program
