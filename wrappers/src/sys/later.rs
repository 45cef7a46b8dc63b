//! A value that is created when it is first needed, and stays. Unlike `OnceLock` it is all zeros until then, so
//! that a static with many of them takes no room in the file.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

#[repr(transparent)]
pub(crate) struct Later<T>(AtomicPtr<T>);

impl<T: Send + Sync + 'static> Default for Later<T> {
    fn default() -> Later<T> {
        Later::new()
    }
}

impl<T: Send + Sync + 'static> Later<T> {
    pub(crate) const fn new() -> Later<T> {
        Later(AtomicPtr::new(ptr::null_mut()))
    }

    pub(crate) fn get(&self) -> Option<&T> {
        // Pairs with the Release in `get_or_make`: a thread that sees the value sees all of it.
        let value = self.0.load(Ordering::Acquire);
        // SAFETY: null, or a value that is never freed, and only changed through shared references.
        unsafe { value.as_ref() }
    }

    pub(crate) fn get_or_make(&self, make: impl FnOnce() -> T) -> &T {
        if let Some(value) = self.get() {
            return value;
        }
        let value = Box::into_raw(Box::new(make()));
        let (release, acquire) = (Ordering::AcqRel, Ordering::Acquire);
        match self.0.compare_exchange(ptr::null_mut(), value, release, acquire) {
            // SAFETY: as in `get`.
            Ok(_) => unsafe { &*value },
            Err(other) => {
                // SAFETY: created above, and no other thread has seen it.
                drop(unsafe { Box::from_raw(value) });
                // SAFETY: as in `get`; another thread was quicker.
                unsafe { &*other }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_made_first_stays() {
        static VALUE: Later<u32> = Later::new();
        assert_eq!(VALUE.get(), None);
        assert_eq!((VALUE.get_or_make(|| 7), VALUE.get_or_make(|| 8)), (&7, &7));
        assert_eq!(VALUE.get(), Some(&7));
    }
}
