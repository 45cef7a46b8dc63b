! Bytes through Fortran: BINDING_MPI for `use mpi`, BINDING_F08 for `use mpi_f08`. 2 ranks.
! Expect: MPI_Send 2 calls 64 bytes (one to MPI_PROC_NULL), MPI_Allreduce 2 calls 32 (one in place),
! MPI_Allgather 1 call 12 (in place), MPI_Alltoallv 1 call 16, MPI_Alltoallw 1 call 24, MPI_Put 1 call
! 8; MPI_Comm_dup, MPI_Comm_idup, MPI_Win_create, each freed.
program fortran_bytes
#ifdef BINDING_F08
  use mpi_f08
  implicit none
  type(MPI_Comm) :: copy, later
  type(MPI_Win) :: window
  type(MPI_Request) :: request
  type(MPI_Datatype) :: types(2)
#else
  use mpi
  implicit none
  integer :: copy, later, window, request, types(2)
#endif
  double precision :: numbers(8)
  integer :: rank, other, ierr, memory(4), a(6), b(6), counts(2), places(2), bytes(2)
  integer(kind=MPI_ADDRESS_KIND) :: length
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  other = 1 - rank
  numbers = rank
  if (rank == 0) then
    call MPI_Send(numbers, 8, MPI_DOUBLE_PRECISION, other, 1, MPI_COMM_WORLD, ierr)
    call MPI_Recv(numbers, 8, MPI_DOUBLE_PRECISION, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
  else
    call MPI_Recv(numbers, 8, MPI_DOUBLE_PRECISION, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
    call MPI_Send(numbers, 8, MPI_DOUBLE_PRECISION, other, 1, MPI_COMM_WORLD, ierr)
  end if
  call MPI_Send(numbers, 8, MPI_DOUBLE_PRECISION, MPI_PROC_NULL, 1, MPI_COMM_WORLD, ierr)
  a = rank
  call MPI_Allreduce(a, b, 4, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  call MPI_Allreduce(MPI_IN_PLACE, b, 4, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  call MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, b, 3, MPI_INTEGER, MPI_COMM_WORLD, ierr)
  counts = 2
  places = [0, 3]
  call MPI_Alltoallv(a, counts, places, MPI_INTEGER, b, counts, places, MPI_INTEGER, &
                     MPI_COMM_WORLD, ierr)
  counts = 3
  bytes = [0, 12]
  types = MPI_INTEGER
  call MPI_Alltoallw(a, counts, bytes, types, b, counts, bytes, types, MPI_COMM_WORLD, ierr)
  call MPI_Comm_dup(MPI_COMM_WORLD, copy, ierr)
  call MPI_Comm_set_name(copy, 'copy', ierr)
  call MPI_Comm_idup(MPI_COMM_WORLD, later, request, ierr)
  call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
  call MPI_Comm_free(later, ierr)
  call MPI_Comm_free(copy, ierr)
  length = 16
  memory = 0
  call MPI_Win_create(memory, length, 4, MPI_INFO_NULL, MPI_COMM_WORLD, window, ierr)
  call MPI_Win_fence(0, window, ierr)
  length = 0
  call MPI_Put(a, 2, MPI_INTEGER, other, length, 2, MPI_INTEGER, window, ierr)
  call MPI_Win_fence(0, window, ierr)
  call MPI_Win_free(window, ierr)
  call MPI_Finalize(ierr)
end program fortran_bytes
