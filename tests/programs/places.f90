! The same as places.c: here() is called in line 8, in a procedure of a module, which the program calls
! in line 16.
module halo
contains
    subroutine exchange(received)
        integer, intent(inout) :: received

        call here()
        received = received + 1
    end subroutine
end module

program places
    use halo
    integer :: received = 0
    call exchange(received)
    if (received /= 1) stop 1
end program
