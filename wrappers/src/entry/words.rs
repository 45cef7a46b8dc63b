//! How do the arguments of a call become consecutive words? This happens on every path but the fastest: what
//! follows is the same for all functions ([`super::call`]).
//!
//! On x86-64 it is done in assembly, once, so that an entry point only says which one it is: the compiler would
//! make a function with its own frame for each of thousands.

/// A function that stores its arguments and continues as `$then` of [`super::call`]; a Fortran routine also
/// passes the number of its spelling.
#[cfg(target_arch = "x86_64")]
macro_rules! as_words {
    (
        $(#[$attribute:meta])* $visibility:vis fn $name:ident ( $($arg:ident : $type:ty),* ) $(-> $result:ty)?
        => $then:ident ( $entry:path $(, $spelling:expr)? )
    ) => {
        $(#[$attribute])*
        #[unsafe(naked)]
        #[allow(non_snake_case, clippy::too_many_arguments, clippy::similar_names)]
        $visibility extern "C-unwind" fn $name($($arg: $type),*) $(-> $result)? {
            // r10 and r11 hold no argument and need not be preserved (System V ABI, 3.2.1).
            std::arch::naked_asm!(
                "lea r10, [rip + {entry}]",
                $(concat!("mov r11d, {spelling} # ", stringify!($spelling)),)?
                "jmp {then}",
                entry = sym $entry,
                $(spelling = const $spelling,)?
                then = sym $crate::entry::words::$then,
            )
        }
    };
}

#[cfg(not(target_arch = "x86_64"))]
macro_rules! as_words {
    (
        $(#[$attribute:meta])* $visibility:vis fn $name:ident ( $($arg:ident : $type:ty),* ) $(-> $result:ty)?
        => $then:ident ( $entry:path $(, $spelling:expr)? )
    ) => {
        $(#[$attribute])*
        #[allow(non_snake_case, clippy::too_many_arguments, clippy::similar_names)]
        $visibility extern "C-unwind" fn $name($($arg: $type),*) $(-> $result)? {
            // SAFETY: the arguments of this call.
            unsafe { $crate::entry::words::$then(&$entry, &mut [$(Argument::word($arg)),*] $(, $spelling)?) }
        }
    };
}

pub(super) use as_words;

// A library for one MPI has routines in Fortran of its own.
#[cfg_attr(feature = "static", allow(unused_imports))]
pub(super) use laid::{forward, from_c, from_fortran};

/// The return address is found on the stack when it is needed.
#[cfg(not(target_arch = "x86_64"))]
mod laid {
    use std::ffi::c_int;

    pub(in crate::entry) use super::super::call::forward;
    use super::super::call::{self, Entry};

    /// # Safety
    ///
    /// As of [`call::from_c`].
    pub(in crate::entry) unsafe fn from_c(entry: &Entry, words: &[usize]) -> c_int {
        // SAFETY: the caller's.
        unsafe { call::from_c(entry, words, 0) }
    }

    /// # Safety
    ///
    /// As of [`call::from_fortran`].
    pub(in crate::entry) unsafe fn from_fortran(
        entry: &Entry,
        words: &mut [usize],
        spelling: usize,
    ) {
        // SAFETY: the caller's.
        unsafe { call::from_fortran(entry, words, spelling, 0) }
    }
}

#[cfg(target_arch = "x86_64")]
mod laid {
    use std::ffi::c_int;
    use std::slice;

    use super::super::call::{self, Entry};

    /// Continues a function defined by `as_words`, with the arguments of the caller.
    macro_rules! lay {
        ($name:ident $then:ident) => {
            #[unsafe(naked)]
            pub(in crate::entry) extern "C-unwind" fn $name() {
                std::arch::naked_asm!(
                    ".cfi_startproc",
                    // The return address is between the arguments in registers and those on the stack (System V
                    // ABI for x86-64, 3.2.3), so it is moved.
                    "pop rax",
                    ".cfi_def_cfa_offset 0",
                    ".cfi_register 16, 0",
                    "push r9",
                    ".cfi_adjust_cfa_offset 8",
                    "push r8",
                    ".cfi_adjust_cfa_offset 8",
                    "push rcx",
                    ".cfi_adjust_cfa_offset 8",
                    "push rdx",
                    ".cfi_adjust_cfa_offset 8",
                    "push rsi",
                    ".cfi_adjust_cfa_offset 8",
                    "push rdi",
                    ".cfi_adjust_cfa_offset 8",
                    "mov rdi, r10",
                    "mov rsi, rsp",
                    "mov edx, r11d",
                    "mov rcx, rax",
                    "push rax",
                    ".cfi_adjust_cfa_offset 8",
                    ".cfi_offset 16, -56",
                    // The stack must be aligned to two words at a call.
                    "push rax",
                    ".cfi_adjust_cfa_offset 8",
                    "call {then}",
                    "pop rcx",
                    ".cfi_adjust_cfa_offset -8",
                    "pop rcx",
                    ".cfi_adjust_cfa_offset -8",
                    ".cfi_register 16, 2",
                    "add rsp, 40",
                    ".cfi_adjust_cfa_offset -40",
                    "mov qword ptr [rsp], rcx",
                    ".cfi_offset 16, -8",
                    "ret",
                    ".cfi_endproc",
                    then = sym $then,
                )
            }
        };
    }
    lay!(from_c c);
    lay!(forward c_uncounted);
    lay!(from_fortran fortran);

    extern "C-unwind" fn c(entry: &Entry, words: *const usize, _: usize, caller: usize) -> c_int {
        // SAFETY: the function has as many arguments, and `lay` has put them there.
        let words = unsafe { slice::from_raw_parts(words, entry.arguments.len()) };
        // SAFETY: the arguments of this call.
        unsafe { call::from_c(entry, words, caller) }
    }

    extern "C-unwind" fn c_uncounted(entry: &Entry, words: *const usize) -> c_int {
        // SAFETY: as in `c`.
        let words = unsafe { slice::from_raw_parts(words, entry.arguments.len()) };
        // SAFETY: the arguments of this call.
        unsafe { call::forward(entry, words) }
    }

    extern "C-unwind" fn fortran(entry: &Entry, words: *mut usize, spelling: usize, caller: usize) {
        // SAFETY: as in `c`; the argument area of the stack belongs to the called function (3.2.3).
        let words = unsafe { slice::from_raw_parts_mut(words, entry.words_from_fortran) };
        // SAFETY: the arguments of this call.
        unsafe { call::from_fortran(entry, words, spelling, caller) }
    }
}
