//! Where does a call return to? The first instructions of an entry point record it: there the address is at the
//! top of the stack, and later only unwinding would find it.

/// A function that continues as `$inner`. If receives are watched, it records its return address and continues
/// as `$watched`. All have the same arguments.
#[cfg(target_arch = "x86_64")]
macro_rules! noting_caller {
    (
        $(#[$attribute:meta])* fn $name:ident ( $($arg:ident : $type:ty),* ) $(-> $result:ty)?,
        $inner:path, $watched:path
    ) => {
        $(#[$attribute])*
        #[unsafe(naked)]
        #[allow(non_snake_case, clippy::too_many_arguments, clippy::similar_names)]
        extern "C-unwind" fn $name($($arg: $type),*) $(-> $result)? {
            // r10 and r11 hold no argument and need not be preserved (System V ABI, 3.2.1). The variable is
            // that of `crate::thread`, at an offset that the loader wrote.
            std::arch::naked_asm!(
                "cmp byte ptr [rip + {on}], 0",
                "jne 2f",
                "jmp {inner}",
                "2:",
                "mov r10, qword ptr [rsp]",
                "mov r11, qword ptr [rip + gyan_thread@GOTTPOFF]",
                "mov qword ptr fs:[r11 + {caller}], r10",
                "jmp {watched}",
                on = sym $crate::observe::receives::ON,
                caller = const std::mem::offset_of!($crate::calls::thread::Thread, caller),
                inner = sym $inner,
                watched = sym $watched,
            )
        }
    };
}

#[cfg(not(target_arch = "x86_64"))]
macro_rules! noting_caller {
    (
        $(#[$attribute:meta])* fn $name:ident ( $($arg:ident : $type:ty),* ) $(-> $result:ty)?,
        $inner:path, $watched:path
    ) => {
        $(#[$attribute])*
        #[allow(non_snake_case, clippy::too_many_arguments, clippy::similar_names)]
        extern "C-unwind" fn $name($($arg: $type),*) $(-> $result)? {
            if $crate::observe::receives::is_on() { $watched($($arg),*) } else { $inner($($arg),*) }
        }
    };
}

pub(super) use noting_caller;
