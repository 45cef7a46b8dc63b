//! Functions of the library with any arguments, as an address and words: what the trampoline takes.

use std::ffi::{c_int, c_void};

/// Arguments that a function has at most.
pub(super) const ARGUMENTS: usize = 14;

/// The arguments of a call, each as a machine word; 0 for missing ones.
pub(super) type Words = [usize; ARGUMENTS];

/// A C function that returns an `int` and takes only integers and pointers.
pub(crate) trait GuardedFunction<Arguments>: Copy {
    fn address(self) -> *const c_void;
    fn words(arguments: Arguments) -> [usize; ARGUMENTS];
    /// Calls it without a guard.
    ///
    /// # Safety
    /// As for the function itself.
    unsafe fn direct(self, arguments: Arguments) -> c_int;
}

/// A type that fits into an integer register.
pub(crate) trait GuardWord: Copy {
    fn word(self) -> usize;
}

impl GuardWord for c_int {
    fn word(self) -> usize {
        // The callee reads only the lower half of an int.
        self.cast_unsigned() as usize
    }
}

impl GuardWord for usize {
    fn word(self) -> usize {
        self
    }
}

impl<T> GuardWord for *mut T {
    fn word(self) -> usize {
        self as usize
    }
}

impl<T> GuardWord for *const T {
    fn word(self) -> usize {
        self as usize
    }
}

macro_rules! functions {
    ($(($($type:ident $argument:ident),*);)*) => {$(
        impl<$($type: GuardWord),*> GuardedFunction<($($type,)*)> for unsafe extern "C" fn($($type),*) -> c_int {
            fn address(self) -> *const c_void {
                self as *const c_void
            }

            fn words(($($argument,)*): ($($type,)*)) -> [usize; ARGUMENTS] {
                let given: &[usize] = &[$($argument.word()),*];
                let mut words = [0; ARGUMENTS];
                for (word, given) in words.iter_mut().zip(given) {
                    *word = *given;
                }
                words
            }

            unsafe fn direct(self, ($($argument,)*): ($($type,)*)) -> c_int {
                // SAFETY: the caller's promise.
                unsafe { self($($argument),*) }
            }
        }
    )*};
}

functions! {
    ();
    (A a);
    (A a, B b);
    (A a, B b, C c);
    (A a, B b, C c, D d);
    (A a, B b, C c, D d, E e);
    (A a, B b, C c, D d, E e, F f, G g, H h);
    (A a, B b, C c, D d, E e, F f, G g, H h, I i);
    (A a, B b, C c, D d, E e, F f, G g, H h, I i, J j);
    (A a, B b, C c, D d, E e, F f, G g, H h, I i, J j, K k, L l);
    (A a, B b, C c, D d, E e, F f, G g, H h, I i, J j, K k, L l, M m);
}
