//! Cells that each thread has for itself, as cheaply as the ABI allows.
//!
//! In a library that is preloaded, thread-local storage is two instructions away, at a place that is
//! fixed when the program starts (the initial-exec model of the ELF ABI). The compiler would call a
//! function for it, which takes as long as everything else on the fast path. So the variable is declared to
//! the assembler where the processor allows it.

/// Declares a struct of cells, all of them zero when a thread starts, and a function `here` that gives those
/// of the thread that runs. `symbol` is the variable's name to the linker.
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

        /// The cells of one thread. It stays in that thread where threads are those of POSIX, as MPI assumes
        /// (MPI 4.1, 11.6.1).
        ///
        /// An MPI that is built on user-level threads may go on with one in another kernel thread after a
        /// call that waits. What is kept across that call, the mark of being inside, is then taken away from
        /// the thread in which the call began, while that may be setting it: a byte that both write as a
        /// whole.
        #[derive(Clone, Copy)]
        $visibility struct Here(*const $Cells);

        impl ::std::ops::Deref for Here {
            type Target = $Cells;

            #[inline]
            fn deref(&self) -> &$Cells {
                // SAFETY: this thread's variable, which has no destructor and is there as long as the thread
                // runs. gyan never hands the pointer to another thread. Where the MPI does, see above, the
                // kernel threads are a pool that the MPI ends in MPI_Finalize, after every call.
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

        /// The cells of the thread that runs.
        #[cfg(target_arch = "x86_64")]
        #[inline]
        $visibility fn here() -> Here {
            let place: *const $Cells;
            // SAFETY: the address of the variable above: the thread pointer, which lies at fs:0, and an
            // offset that the loader wrote (ELF Handling For Thread-Local Storage, 4.4.6). Neither is the
            // same for ever, as `nomem` would say: after a call that may have moved a user-level thread to
            // another kernel thread it is looked up again.
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

        /// The cells of the thread that runs.
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
