! What a wrapper in between could spoil: strings, whose lengths are hidden after ierr, ierr itself
! and its absence, and addresses that mean something else than a buffer. Compiled once for each
! binding, with BINDING_MPIF, BINDING_MPI or BINDING_F08. Two ranks.
! Expect: the same output as without gyan; MPI_Recv 4, MPI_Irecv 2 in each profile.
#ifdef BINDING_F08
#define HANDLE(name) type(name)
#define STATUS type(MPI_Status)
#define SOURCE_OF(status) status%MPI_SOURCE
#else
#define HANDLE(name) integer
#define STATUS integer, dimension(MPI_STATUS_SIZE)
#define SOURCE_OF(status) status(MPI_SOURCE)
#endif
program specials
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
  integer :: rank, ierr, other
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  other = 1 - rank
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN, ierr)
  call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN, ierr)
  call strings()
  call infos()
  call files()
  call errors()
  call addresses()
#ifdef BINDING_F08
  ! ierror is optional there.
  call MPI_Barrier(MPI_COMM_WORLD)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  write (*, '(I2,A)') rank, ' without ierror'
#endif
  call MPI_Finalize(ierr)
  write (*, '(I2,A,I4)') rank, ' ended', ierr
contains

  ! Every character, so that one written too far or too few shows.
  subroutine show(what, text, length)
    character(len=*), intent(in) :: what, text
    integer, intent(in) :: length
    write (*, '(I2,5A,I6,I4)') rank, ' ', what, ' [', text, ']', length, ierr
  end subroutine show

  subroutine strings()
    character(len=MPI_MAX_PROCESSOR_NAME) :: processor
    character(len=MPI_MAX_LIBRARY_VERSION_STRING) :: version
    character(len=MPI_MAX_OBJECT_NAME) :: name
    character(len=MPI_MAX_ERROR_STRING) :: message
#ifndef BINDING_F08
    character(len=1) :: shortest
#endif
    integer :: length, class, code
    HANDLE(MPI_Comm) :: comm
    HANDLE(MPI_Datatype) :: pair
    HANDLE(MPI_Win) :: win
    integer, asynchronous :: memory(4)
    processor = repeat('x', len(processor))
    call MPI_Get_processor_name(processor, length, ierr)
    call show('processor', processor, length)
    version = repeat('x', len(version))
    call MPI_Get_library_version(version, length, ierr)
    call show('version', version, length)
    name = repeat('x', len(name))
    call MPI_Comm_get_name(MPI_COMM_WORLD, name, length, ierr)
    call show('world', name, length)
    call MPI_Comm_dup(MPI_COMM_WORLD, comm, ierr)
    call MPI_Comm_set_name(comm, '  a name with blanks around   ', ierr)
    name = repeat('x', len(name))
    call MPI_Comm_get_name(comm, name, length, ierr)
    call show('named', name, length)
#ifndef BINDING_F08
    ! The shortest string that there is; mpi_f08 wants the longest.
    call MPI_Comm_set_name(comm, 'c', ierr)
    shortest = 'x'
    call MPI_Comm_get_name(comm, shortest, length, ierr)
    call show('shortest', shortest, length)
#endif
    call MPI_Comm_free(comm, ierr)
    call MPI_Type_contiguous(2, MPI_INTEGER, pair, ierr)
    call MPI_Type_set_name(pair, 'pair', ierr)
    name = repeat('x', len(name))
    call MPI_Type_get_name(pair, name, length, ierr)
    call show('type', name, length)
    call MPI_Type_free(pair, ierr)
    call MPI_Win_create(memory, 16_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, MPI_COMM_WORLD, win, ierr)
    call MPI_Win_set_name(win, 'window', ierr)
    name = repeat('x', len(name))
    call MPI_Win_get_name(win, name, length, ierr)
    call show('window', name, length)
    call MPI_Win_free(win, ierr)
    call MPI_Add_error_class(class, ierr)
    call MPI_Add_error_code(class, code, ierr)
    call MPI_Add_error_string(code, 'an error of our own', ierr)
    message = repeat('x', len(message))
    call MPI_Error_string(code, message, length, ierr)
    call show('own error', message, length)
    message = repeat('x', len(message))
    call MPI_Error_string(MPI_ERR_TRUNCATE, message, length, ierr)
    call show('error', message, length)
  end subroutine strings

  subroutine infos()
    HANDLE(MPI_Info) :: info, copy
    character(len=MPI_MAX_INFO_KEY) :: key
    character(len=20) :: value
    character(len=5) :: cut
    logical :: flag
    integer :: length
    call MPI_Info_create(info, ierr)
    ! Two strings of different lengths: two hidden lengths, which must not change places.
    call MPI_Info_set(info, 'a_long_key_for', 'v', ierr)
    call MPI_Info_set(info, 'k', 'a longer value', ierr)
    value = repeat('x', len(value))
    call MPI_Info_get(info, 'a_long_key_for', len(value), value, flag, ierr)
    call show('value', value, merge(1, 0, flag))
    value = repeat('x', len(value))
    call MPI_Info_get(info, 'k', len(value), value, flag, ierr)
    call show('value', value, merge(1, 0, flag))
    cut = repeat('x', len(cut))
    call MPI_Info_get(info, 'k', len(cut), cut, flag, ierr)
    call show('cut', cut, merge(1, 0, flag))
    call MPI_Info_get(info, 'absent', len(cut), cut, flag, ierr)
    write (*, '(I2,A,L2,I4)') rank, ' absent', flag, ierr
    call MPI_Info_get_valuelen(info, 'k', length, flag, ierr)
    write (*, '(I2,A,I4,L2,I4)') rank, ' value length', length, flag, ierr
    call MPI_Info_get_nkeys(info, length, ierr)
    key = repeat('x', len(key))
    call MPI_Info_get_nthkey(info, 0, key, ierr)
    call show('first key', key, length)
    call MPI_Info_dup(info, copy, ierr)
    call MPI_Info_delete(copy, 'k', ierr)
    call MPI_Info_get_nkeys(copy, length, ierr)
    write (*, '(I2,A,I4,I4)') rank, ' keys left', length, ierr
    call MPI_Info_free(copy, ierr)
    call MPI_Info_free(info, ierr)
  end subroutine infos

  subroutine files()
    HANDLE(MPI_File) :: file
    HANDLE(MPI_Datatype) :: etype, filetype
    integer(kind=MPI_OFFSET_KIND) :: displacement
    integer(kind=MPI_ADDRESS_KIND) :: bytes, position
    character(len=MPI_MAX_DATAREP_STRING) :: datarep
    character(len=8) :: external(2)
    character(len=20) :: filename
    integer :: numbers(2), class, e
    write (filename, '(A,I1)') 'specials.', rank
    call MPI_File_open(MPI_COMM_SELF, filename, MPI_MODE_CREATE + MPI_MODE_RDWR, MPI_INFO_NULL, &
                       file, ierr)
    write (*, '(I2,A,I4)') rank, ' opened', ierr
    call MPI_File_set_view(file, 8_MPI_OFFSET_KIND, MPI_INTEGER, MPI_INTEGER, 'native', &
                           MPI_INFO_NULL, ierr)
    datarep = repeat('x', len(datarep))
    call MPI_File_get_view(file, displacement, etype, filetype, datarep, ierr)
    call show('view', datarep, int(displacement))
    call MPI_File_close(file, ierr)
    call MPI_File_delete(filename, MPI_INFO_NULL, ierr)
    write (*, '(I2,A,I4)') rank, ' deleted', ierr
    call MPI_File_open(MPI_COMM_SELF, 'absent/file', MPI_MODE_RDONLY, MPI_INFO_NULL, file, ierr)
    call MPI_Error_class(ierr, class, e)
    write (*, '(I2,A,L2)') rank, ' no such file', class == MPI_ERR_NO_SUCH_FILE
    numbers = [rank + 1, 1000]
    call MPI_Pack_external_size('external32', 2, MPI_INTEGER, bytes, ierr)
    position = 0
    external = ''
    call MPI_Pack_external('external32', numbers, 2, MPI_INTEGER, external, &
                           16_MPI_ADDRESS_KIND, position, ierr)
    numbers = 0
    write (*, '(I2,A,2I4,I4)') rank, ' packed', bytes, position, ierr
    position = 0
    call MPI_Unpack_external('external32', external, 16_MPI_ADDRESS_KIND, position, numbers, 2, &
                             MPI_INTEGER, ierr)
    write (*, '(I2,A,2I5,I4)') rank, ' unpacked', numbers, ierr
  end subroutine files

  subroutine errors()
    integer :: x, e, class, length
    character(len=MPI_MAX_ERROR_STRING) :: message
    x = rank
    call MPI_Send(x, 1, MPI_INTEGER, 12345, 0, MPI_COMM_WORLD, ierr)
    call MPI_Error_class(ierr, class, e)
    write (*, '(I2,A,2L2)') rank, ' bad rank', ierr /= MPI_SUCCESS, class == MPI_ERR_RANK
    call MPI_Recv(x, -1, MPI_INTEGER, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
    call MPI_Error_class(ierr, class, e)
    write (*, '(I2,A,2L2)') rank, ' bad count', ierr /= MPI_SUCCESS, class == MPI_ERR_COUNT
    message = repeat('x', len(message))
    call MPI_Error_string(class, message, length, e)
    ierr = 0
    call show('said', message, length)
  end subroutine errors

  subroutine addresses()
    integer(kind=MPI_ADDRESS_KIND) :: address(1)
    HANDLE(MPI_Datatype) :: absolute
    HANDLE(MPI_Request) :: requests(2)
    STATUS :: status
    integer, asynchronous :: x, y
    integer :: total, gathered(2)
    x = -1
    call MPI_Get_address(x, address(1), ierr)
    call MPI_Type_create_hindexed(1, [1], address, MPI_INTEGER, absolute, ierr)
    call MPI_Type_commit(absolute, ierr)
    call MPI_Isend(rank, 1, MPI_INTEGER, other, 1, MPI_COMM_WORLD, requests(1), ierr)
    call MPI_Recv(MPI_BOTTOM, 1, absolute, other, 1, MPI_COMM_WORLD, status, ierr)
    call MPI_Wait(requests(1), MPI_STATUS_IGNORE, ierr)
    write (*, '(I2,A,2I4,I4)') rank, ' at an address', x, SOURCE_OF(status), ierr
    call MPI_Irecv(MPI_BOTTOM, 1, absolute, other, 2, MPI_COMM_WORLD, requests(1), ierr)
    call MPI_Isend(rank, 1, MPI_INTEGER, other, 2, MPI_COMM_WORLD, requests(2), ierr)
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierr)
    write (*, '(I2,A,I4,I4)') rank, ' and again', x, ierr
    call MPI_Type_free(absolute, ierr)
    call MPI_Irecv(y, 1, MPI_INTEGER, MPI_PROC_NULL, 0, MPI_COMM_WORLD, requests(1), ierr)
    call MPI_Wait(requests(1), status, ierr)
    write (*, '(I2,A,L2,I4)') rank, ' from none', SOURCE_OF(status) == MPI_PROC_NULL, ierr
    call MPI_Recv(y, 1, MPI_INTEGER, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
    call MPI_Recv(MPI_BOTTOM, 0, MPI_INTEGER, MPI_PROC_NULL, 0, MPI_COMM_WORLD, status, ierr)
    total = rank + 1
    call MPI_Allreduce(MPI_IN_PLACE, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
    gathered = 0
    gathered(rank + 1) = rank + 7
    call MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, gathered, 1, MPI_INTEGER, &
                       MPI_COMM_WORLD, ierr)
    write (*, '(I2,A,4I4)') rank, ' in place', total, gathered, ierr
  end subroutine addresses
end program specials
