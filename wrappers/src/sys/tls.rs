//! Thread-local cells, as cheap as the ABI allows.
//!
//! In a preloaded library, thread-local storage is two instructions away, at an offset that is fixed when the
//! program starts (the initial-exec model of the ELF ABI). The compiler would call a function for it, which
//! takes as long as everything else on the fast path. So the variable is declared in assembly on processors
//! that support it.

/// Declares a struct of cells, all zero when a thread starts, and a function `here` that returns those of the
/// current thread. `symbol` is the variable's name for the linker.
macro_rules! thread_cells {
    (
        $symbol:literal
        $(#[$meta:meta])* $visibility:vis struct $Cells:ident {
            $($(#[$field_meta:meta])* $field_visibility:vis $field:ident: $type:ty,)*
        }
    ) => {
        $(#[$meta])*
        $visibility struct $Cells {
            $($(#[$field_meta])* $field_visibility $field: $type,)*
        }

        /// The cells of one thread. They stay with that thread if threads are POSIX threads, as MPI assumes
        /// (MPI 4.1, 11.6.1).
        ///
        /// An MPI built on user-level threads may resume one in another kernel thread after a call that waits.
        /// The mark of being inside, which is kept across that call, is then cleared in the thread where the
        /// call began, possibly while that thread is setting it: both write it as a single byte.
        #[derive(Clone, Copy)]
        $visibility struct Here(*const $Cells);

        impl ::std::ops::Deref for Here {
            type Target = $Cells;

            #[inline]
            fn deref(&self) -> &$Cells {
                // SAFETY: this thread's variable, which has no destructor and exists as long as the thread
                // runs. gyan never passes the pointer to another thread. If the MPI does, see above, the kernel
                // threads are a pool that the MPI ends in MPI_Finalize, after every call.
                unsafe { &*self.0 }
            }
        }

        #[cfg(target_arch = "x86_64")]
        ::std::arch::global_asm!(
            concat!(".pushsection .tbss.", $symbol, ",\"awT\",@nobits"),
            ".balign 8",
            concat!(".globl ", $symbol),
            concat!(".hidden ", $symbol),
            concat!(".type ", $symbol, ", @object"),
            concat!(".size ", $symbol, ", {size}"),
            concat!($symbol, ": .zero {size}"),
            ".popsection",
            size = const size_of::<$Cells>(),
        );

        /// The cells of the current thread.
        #[cfg(target_arch = "x86_64")]
        #[inline]
        $visibility fn here() -> Here {
            let place: *const $Cells;
            // SAFETY: the address of the variable above: the thread pointer, which is at fs:0, plus an offset
            // that the loader wrote (ELF Handling For Thread-Local Storage, 4.4.6). It is not constant, as
            // `nomem` would claim: after a call that may have moved a user-level thread to another kernel
            // thread it is looked up again.
            unsafe {
                ::std::arch::asm!(
                    "mov {place}, qword ptr fs:[0]",
                    concat!("add {place}, qword ptr [rip + ", $symbol, "@GOTTPOFF]"),
                    place = out(reg) place,
                    options(pure, readonly, nostack),
                );
            }
            Here(place)
        }

        /// The cells of the current thread.
        #[cfg(not(target_arch = "x86_64"))]
        $visibility fn here() -> Here {
            ::std::thread_local! {
                // SAFETY: every cell may be zero.
                static CELLS: $Cells = const { unsafe { ::std::mem::zeroed() } };
            }
            CELLS.with(|cells| Here(cells))
        }
    };
}

pub(crate) use thread_cells;

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    thread_cells! {
        "gyan_tls_test"
        struct Cells {
            number: Cell<u64>,
            flag: Cell<bool>,
        }
    }

    #[test]
    fn each_thread_has_its_own_cells_and_they_are_zero_at_first() {
        here().flag.set(true);
        here().number.set(7);
        let place = here().0 as usize;
        let other = std::thread::spawn(|| {
            assert!(!here().flag.get() && here().number.get() == 0);
            here().0 as usize
        });
        assert_ne!(other.join().unwrap(), place);
        assert!(here().flag.get() && here().number.get() == 7);
    }
}
