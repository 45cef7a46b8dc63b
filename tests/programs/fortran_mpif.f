C Receives through mpif.h, in fixed form: 5 + rank from MPI_PROC_NULL, 3 nonblocking, 2 with
C MPI_Sendrecv, 1 persistent, with MPI_STATUS_IGNORE, MPI_IN_PLACE and MPI_BOTTOM on the way.
C Expect: MPI_Recv 5 + rank, MPI_Irecv 3, MPI_Sendrecv 2, MPI_Recv_init 1 in each profile; the
C same output as without gyan.
      program receives
      implicit none
      include 'mpif.h'
      integer ierr, rank, nranks, i, x, y, left, right, req(2)
      integer status(MPI_STATUS_SIZE), length
      character*(MPI_MAX_PROCESSOR_NAME) name
      call MPI_INIT(ierr)
      call MPI_COMM_RANK(MPI_COMM_WORLD, rank, ierr)
      call MPI_COMM_SIZE(MPI_COMM_WORLD, nranks, ierr)
      right = mod(rank + 1, nranks)
      left = mod(rank + nranks - 1, nranks)
      do i = 1, 4 + rank
        call MPI_RECV(x, 1, MPI_INTEGER, MPI_PROC_NULL, 0,
     &                MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
      end do
      do i = 1, 3
        call MPI_IRECV(x, 1, MPI_INTEGER, left, 1,
     &                 MPI_COMM_WORLD, req(1), ierr)
        call MPI_ISEND(rank, 1, MPI_INTEGER, right, 1,
     &                 MPI_COMM_WORLD, req(2), ierr)
        call MPI_WAITALL(2, req, MPI_STATUSES_IGNORE, ierr)
      end do
      do i = 1, 2
        call MPI_SENDRECV(rank, 1, MPI_INTEGER, right, 2, y, 1,
     &      MPI_INTEGER, left, 2, MPI_COMM_WORLD, status, ierr)
      end do
      call MPI_RECV_INIT(x, 1, MPI_INTEGER, MPI_PROC_NULL, 0,
     &                   MPI_COMM_WORLD, req(1), ierr)
      call MPI_REQUEST_FREE(req(1), ierr)
      i = rank
      call MPI_ALLREDUCE(MPI_IN_PLACE, i, 1, MPI_INTEGER, MPI_SUM,
     &                   MPI_COMM_WORLD, ierr)
      call MPI_RECV(MPI_BOTTOM, 0, MPI_INTEGER, MPI_PROC_NULL, 0,
     &              MPI_COMM_WORLD, status, ierr)
      call MPI_GET_PROCESSOR_NAME(name, length, ierr)
      if (status(MPI_SOURCE) .ne. MPI_PROC_NULL) stop 1
      if (ierr .ne. MPI_SUCCESS .or. length .le. 0) stop 2
      write (*, '(A,I2,A,I2,A,I2)') 'rank', rank, ' got', y,
     &      ' sum', i
      call MPI_FINALIZE(ierr)
      end
