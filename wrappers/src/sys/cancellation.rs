//! How does gyan keep a thread that the program cancels from ending in the middle of gyan's own work?
//!
//! Opening and writing files are cancellation points (`pthreads(7)`), and a cancellation that unwinds Rust
//! frames up to a `catch_unwind` ends the process.

use std::ffi::c_int;
use std::marker::PhantomData;
use std::ptr;

const DISABLE: c_int = 1;

unsafe extern "C-unwind" {
    fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
}

/// Does `work`, during which this thread cannot be cancelled. A cancellation request in the meantime takes
/// effect at the program's next cancellation point, or at once if the program wants that.
pub(crate) fn without<T>(work: impl FnOnce() -> T) -> T {
    let _disabled = Disabled::new();
    work()
}

/// While this lives, this thread cannot be cancelled; then the previous state returns, even after a panic.
struct Disabled {
    before: c_int,
    /// The state is the thread's own.
    _here: PhantomData<*const ()>,
}

impl Disabled {
    fn new() -> Disabled {
        let mut before = DISABLE;
        // SAFETY: pthread_setcancelstate(3) with a state that there is and room for the one before.
        unsafe { pthread_setcancelstate(DISABLE, &raw mut before) };
        Disabled { before, _here: PhantomData }
    }
}

impl Drop for Disabled {
    fn drop(&mut self) {
        // SAFETY: pthread_setcancelstate(3) with the state that it gave. The thread may end here.
        unsafe { pthread_setcancelstate(self.before, ptr::null_mut()) };
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::c_void;
    use std::fs::File;
    use std::mem::MaybeUninit;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    unsafe extern "C-unwind" {
        fn pthread_testcancel();
    }

    unsafe extern "C" {
        fn pthread_cancel(thread: libc::pthread_t) -> c_int;
        fn pthread_create(
            thread: *mut libc::pthread_t,
            attributes: *const libc::pthread_attr_t,
            start: extern "C-unwind" fn(*mut c_void) -> *mut c_void,
            argument: *mut c_void,
        ) -> c_int;
    }

    static REACHED: AtomicU32 = AtomicU32::new(0);

    extern "C-unwind" fn is_cancelled(_: *mut c_void) -> *mut c_void {
        // SAFETY: pthread_self(3) takes nothing.
        let this = unsafe { libc::pthread_self() };
        // SAFETY: pthread_cancel(3) of this thread, which is pending until a point of cancellation.
        unsafe { pthread_cancel(this) };
        without(|| {
            without(|| drop(File::open("/dev/null")));
            // The previous state, which is still disabled.
            drop(File::open("/dev/null"));
        });
        REACHED.store(1, Ordering::Relaxed);
        // SAFETY: pthread_testcancel(3): nothing in this frame needs to be dropped.
        unsafe { pthread_testcancel() };
        REACHED.store(2, Ordering::Relaxed);
        ptr::null_mut()
    }

    #[test]
    fn a_cancellation_waits_until_the_work_is_done() {
        const CANCELED: usize = usize::MAX;
        let mut thread = MaybeUninit::uninit();
        let mut result = ptr::null_mut();
        // SAFETY: pthread_create(3) with default attributes; a thread of Rust's would end the process when
        // it is cancelled.
        let created = unsafe {
            pthread_create(thread.as_mut_ptr(), ptr::null(), is_cancelled, ptr::null_mut())
        };
        assert_eq!(created, 0);
        // SAFETY: it was filled in, as there was no error.
        let thread = unsafe { thread.assume_init() };
        // SAFETY: pthread_join(3) of a thread that nobody else waits for.
        unsafe { libc::pthread_join(thread, &raw mut result) };
        assert_eq!((REACHED.load(Ordering::Relaxed), result.addr()), (1, CANCELED));
    }
}
