//! Where is the next definition of a symbol, the one that would have been called without gyan?
//!
//! In a program that loads its MPI the loader is asked ([`loaded`]); in one that contains it the
//! linker has answered (`linked`).

#[cfg(feature = "static")]
mod linked;
#[cfg(not(feature = "static"))]
mod loaded;

#[cfg(feature = "static")]
pub(crate) use linked::{Object, default, next};
#[cfg(not(feature = "static"))]
pub(crate) use loaded::{Object, default, next};

use std::ffi::{CStr, c_void};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, Ordering};

/// The address of a function or of a data symbol.
pub(crate) type Address = NonNull<c_void>;

/// The C string that `name` is, when it ends with its only NUL.
pub(crate) const fn c_name(name: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(name.as_bytes()) {
        Ok(name) => name,
        // No symbol has this name: nothing is found.
        Err(_) => c"",
    }
}

/// The next definition of one symbol, looked up at its first use.
pub(crate) struct Next {
    name: &'static CStr,
    address: AtomicPtr<c_void>,
}

impl Next {
    pub(crate) const fn new(name: &'static CStr) -> Next {
        Next { name, address: AtomicPtr::new(ptr::null_mut()) }
    }

    pub(crate) const fn name(&self) -> &'static CStr {
        self.name
    }

    /// The definition, when it was looked up before.
    #[inline]
    pub(crate) fn found(&self) -> Option<Address> {
        // Relaxed is enough: the code behind the address was mapped before any thread got here.
        NonNull::new(self.address.load(Ordering::Relaxed))
    }

    /// Tells where it is.
    pub(crate) fn is_at(&self, address: Address) {
        self.address.store(address.as_ptr(), Ordering::Relaxed);
    }

    /// The definition; none when no loaded object has one.
    pub(crate) fn get(&self) -> Option<Address> {
        if let found @ Some(_) = self.found() {
            return found;
        }
        let address = next(self.name)?;
        self.address.store(address.as_ptr(), Ordering::Relaxed);
        Some(address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symbol_that_nobody_has_is_not_found() {
        assert_eq!(next(c"gyan_no_such_symbol"), None);
        assert_eq!(Next::new(c"gyan_no_such_symbol").get(), None);
    }
}
