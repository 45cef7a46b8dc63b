! Phases of a program, for gyan, in Fortran 2003.
!
!     use gyan
!
!     call gyan_phase_begin('solve')
!     ...
!     call gyan_phase_end()
!
! Compile this file with the program. Under gyan the profile keeps apart what happens in each phase.
! Without gyan both subroutines do nothing, and nothing needs to be linked for them; if the C library
! has dlsym in a separate library (glibc before 2.34), link with -ldl. Trailing blanks do not belong to a name.
!
! A phase that begins inside another has the outer name in front, 'solve/exchange', and its numbers do
! not count for the outer phase. gyan_phase_end ends the phase that began last. Phases belong to the
! process, not to a thread: let only one of several threads begin and end them. Before MPI starts and
! after it has ended both do nothing.
module gyan
    use, intrinsic :: iso_c_binding, only: c_associated, c_char, c_f_procpointer, c_funloc, c_funptr, &
        c_null_char, c_null_funptr, c_null_ptr, c_ptr
    implicit none
    private
    public :: gyan_phase_begin, gyan_phase_end

    abstract interface
        subroutine begin_in_c(name) bind(C)
            import :: c_char
            character(kind=c_char), dimension(*), intent(in) :: name
        end subroutine
        subroutine end_in_c() bind(C)
        end subroutine
    end interface

    interface
        function dlsym(handle, symbol) bind(C, name='dlsym')
            import :: c_char, c_funptr, c_ptr
            type(c_ptr), value :: handle
            character(kind=c_char), dimension(*), intent(in) :: symbol
            type(c_funptr) :: dlsym
        end function
        function dlerror() bind(C, name='dlerror')
            import :: c_ptr
            type(c_ptr) :: dlerror
        end function
    end interface

    ! One word each for both "looked for" and "found", so threads may race for it.
    type(c_funptr), save :: known_begin = c_null_funptr
    type(c_funptr), save :: known_end = c_null_funptr

contains

    subroutine gyan_phase_begin(name)
        character(len=*), intent(in) :: name
        procedure(begin_in_c), pointer :: begin
        type(c_funptr) :: found
        found = known_begin
        if (.not. c_associated(found)) then
            found = find('gyan_phase_begin')
            if (.not. c_associated(found)) found = c_funloc(no_begin)
            known_begin = found
        end if
        call c_f_procpointer(found, begin)
        call begin(trim(name)//c_null_char)
    end subroutine

    subroutine gyan_phase_end()
        procedure(end_in_c), pointer :: end
        type(c_funptr) :: found
        found = known_end
        if (.not. c_associated(found)) then
            found = find('gyan_phase_end')
            if (.not. c_associated(found)) found = c_funloc(no_end)
            known_end = found
        end if
        call c_f_procpointer(found, end)
        call end()
    end subroutine

    ! The function of libgyan, null without it.
    function find(symbol) result(found)
        character(len=*), intent(in) :: symbol
        type(c_funptr) :: found
        type(c_ptr) :: message
        ! A null handle is RTLD_DEFAULT.
        found = dlsym(c_null_ptr, symbol//c_null_char)
        ! So that the program does not take it for an error of its own.
        if (.not. c_associated(found)) message = dlerror()
    end function

    subroutine no_begin(name) bind(C, name='gyan_f90_no_begin')
        character(kind=c_char), dimension(*), intent(in) :: name
    end subroutine

    subroutine no_end() bind(C, name='gyan_f90_no_end')
    end subroutine

end module
