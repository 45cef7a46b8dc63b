//! A program looks up functions of MPI by `dlsym`, in a library that it may have opened for itself alone
//! (`RTLD_LOCAL`: Julia, plugins).
//!
//! Where it would get the very function to which gyan's entry point forwards, it gets the entry point. A name that
//! only gyan has is not there, as without gyan. All else goes on in the C library's `dlsym` by a jump, so that this
//! sees the program's return address, from which it takes what `RTLD_NEXT` and `RTLD_DEFAULT` mean.

use std::ffi::{CStr, c_char, c_void};
use std::ptr::{self, NonNull};

use crate::calls::containment::contain;
use crate::sys::peek::element;
use crate::sys::symbols::{self, Address, LoadedObject};

/// The function that programs call.
#[cfg_attr(not(test), unsafe(no_mangle))]
#[unsafe(naked)]
extern "C" fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void {
    std::arch::naked_asm!(
        ".cfi_startproc",
        "push rsi",
        ".cfi_adjust_cfa_offset 8",
        "push rdi",
        ".cfi_adjust_cfa_offset 8",
        "sub rsp, 8",
        ".cfi_adjust_cfa_offset 8",
        "mov rdx, qword ptr [rsp + 24]",
        "call {answer}",
        "add rsp, 8",
        ".cfi_adjust_cfa_offset -8",
        "pop rdi",
        ".cfi_adjust_cfa_offset -8",
        "pop rsi",
        ".cfi_adjust_cfa_offset -8",
        "test rdx, rdx",
        "jne 2f",
        "ret",
        "2:",
        "jmp rax",
        ".cfi_endproc",
        answer = sym answer,
    )
}

/// In two registers (System V ABI for x86-64, 3.2.3).
#[repr(C)]
struct Answer {
    address: *mut c_void,
    /// 1 when the address is that of the function that answers.
    goes_on: usize,
}

extern "C" fn answer(handle: *mut c_void, name: *const c_char, caller: *mut c_void) -> Answer {
    let real = symbols::real_dlsym();
    let goes_on = Answer { address: real, goes_on: usize::from(!real.is_null()) };
    // SAFETY: the program passed a C string.
    if real.is_null() || !unsafe { may_be_of_mpi(name) } {
        return goes_on;
    }
    // SAFETY: the same.
    let name = unsafe { CStr::from_ptr(name) };
    match contain("looking up a function", || instead(handle, name, caller)).flatten() {
        Some(address) => Answer { address, goes_on: 0 },
        None => goes_on,
    }
}

/// Whether a name begins with `MPI_`, in the spellings of C and Fortran, with or without a letter before it.
///
/// # Safety
///
/// `name` is a C string.
unsafe fn may_be_of_mpi(name: *const c_char) -> bool {
    // SAFETY: called only when all bytes before this one were letters, so it is one of the string.
    let byte = |at| unsafe { element::<u8>(name as usize, at) };
    let begins_at =
        |first| (first..).zip(b"mpi_").all(|(at, letter)| byte(at).eq_ignore_ascii_case(letter));
    begins_at(0) || (byte(0) != 0 && begins_at(1))
}

/// What the program gets instead of the C library's answer; none if it is to have that.
fn instead(handle: *mut c_void, name: &CStr, caller: *mut c_void) -> Option<*mut c_void> {
    let entry = symbols::own()?.look_for(name)?;
    let caller = NonNull::new(caller).and_then(LoadedObject::holding)?;
    let is_next = handle == libc::RTLD_NEXT;
    let found = symbols::dlsym(if is_next { libc::RTLD_DEFAULT } else { handle }, name)?;
    if found == entry {
        // In the global scope. The last of these leaves the error that `dlerror` reports.
        let is_there = symbols::dlsym(libc::RTLD_NEXT, name).is_some()
            || caller.look_for(name).is_some_and(|found| found != entry)
            || symbols::dlsym(libc::RTLD_NEXT, name).is_some();
        return (!is_there).then(ptr::null_mut);
    }
    let of_program = LoadedObject::holding(found)?.path != caller.path;
    (!is_next && of_program && forwards_to(name, found)).then(|| {
        // Forgets what was not found on the way.
        // SAFETY: no arguments; the text is not used.
        unsafe { libc::dlerror() };
        entry.as_ptr()
    })
}

/// Whether gyan's entry point calls the function at this address. Its object then stays loaded.
fn forwards_to(name: &CStr, found: Address) -> bool {
    symbols::is_hidden_with(found);
    symbols::next(name) == Some(found)
        && LoadedObject::holding(found).is_some_and(|object| object.find(name) == Some(found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_mpi_are_told_from_others() {
        for (name, is_of_mpi) in [
            (c"MPI_Recv", true),
            (c"PMPI_Init", true),
            (c"mpi_recv_", true),
            (c"pmpi_recv", true),
            (c"MPI", false),
            (c"M", false),
            (c"PMPI", false),
            (c"", false),
            (c"xxMPI_Recv", false),
        ] {
            // SAFETY: a C string.
            assert_eq!(unsafe { may_be_of_mpi(name.as_ptr()) }, is_of_mpi, "{name:?}");
        }
    }
}
