//! Locks. At the end of the program, `exit` can be called from a signal handler, and so by a thread that holds a
//! lock, or while another thread holds one forever: so waits are short there.

#![forbid(unsafe_code)]

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;
use std::time::Duration;

/// Takes a lock, also after a panic of a thread that held it: what gyan does is contained.
pub(crate) fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes a lock that becomes free soon; none if it does not.
pub(crate) fn lock_soon<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    const TRIES: u32 = 50;
    for _ in 0..TRIES {
        match mutex.try_lock() {
            Ok(guard) => return Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_millis(1)),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_is_held_for_good_is_not_waited_for() {
        let mutex = Mutex::new(1);
        let held = lock_soon(&mutex).unwrap();
        assert!(lock_soon(&mutex).is_none());
        drop(held);
        assert_eq!(*lock_soon(&mutex).unwrap(), 1);
    }
}
