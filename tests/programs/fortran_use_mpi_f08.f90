! Receives through the module mpi_f08: what fortran_mpif.f does, so that the counts are the same.
! Expect: MPI_Recv 5 + rank, MPI_Irecv 3, MPI_Sendrecv 2, MPI_Recv_init 1 in each profile; the same
! output as without gyan.
program receives
  use mpi_f08
  implicit none
  integer :: ierr, rank, nranks, i, x, y, left, right, length
  type(MPI_Request) :: req(2)
  type(MPI_Status) :: status
  character(len=MPI_MAX_PROCESSOR_NAME) :: name
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, nranks, ierr)
  right = mod(rank + 1, nranks)
  left = mod(rank + nranks - 1, nranks)
  do i = 1, 4 + rank
    call MPI_Recv(x, 1, MPI_INTEGER, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
  end do
  do i = 1, 3
    call MPI_Irecv(x, 1, MPI_INTEGER, left, 1, MPI_COMM_WORLD, req(1), ierr)
    call MPI_Isend(rank, 1, MPI_INTEGER, right, 1, MPI_COMM_WORLD, req(2), ierr)
    call MPI_Waitall(2, req, MPI_STATUSES_IGNORE, ierr)
  end do
  do i = 1, 2
    call MPI_Sendrecv(rank, 1, MPI_INTEGER, right, 2, y, 1, MPI_INTEGER, left, 2, MPI_COMM_WORLD, &
                      status, ierr)
  end do
  call MPI_Recv_init(x, 1, MPI_INTEGER, MPI_PROC_NULL, 0, MPI_COMM_WORLD, req(1), ierr)
  call MPI_Request_free(req(1), ierr)
  i = rank
  call MPI_Allreduce(MPI_IN_PLACE, i, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  call MPI_Recv(MPI_BOTTOM, 0, MPI_INTEGER, MPI_PROC_NULL, 0, MPI_COMM_WORLD, status, ierr)
  call MPI_Get_processor_name(name, length, ierr)
  if (status%MPI_SOURCE /= MPI_PROC_NULL) stop 1
  if (ierr /= MPI_SUCCESS .or. length <= 0) stop 2
  write (*, '(A,I2,A,I2,A,I2)') 'rank', rank, ' got', y, ' sum', i
  call MPI_Finalize(ierr)
end program receives
