//! Where is the next definition of a symbol, the one that would have been called without gyan?
//!
//! In a program that loads its MPI the loader is asked ([`loaded`]); in one that contains it, the linker has
//! filled in the answer (`linked`).

#[cfg(feature = "static")]
mod linked;
#[cfg(not(feature = "static"))]
mod loaded;

#[cfg(feature = "static")]
pub(crate) use linked::{LoadedObject, default, is_behind_another_gyan, next};
#[cfg(not(feature = "static"))]
pub(crate) use loaded::{
    LoadedObject, default, dlclose, dlsym, is_behind_another_gyan, is_hidden_with, next, own,
    real_dlsym,
};

use std::ffi::{CStr, c_void};
#[cfg(target_arch = "x86_64")]
use std::mem::offset_of;
use std::ptr::{self, NonNull};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

/// The address of a function or of a data symbol.
pub(crate) type Address = NonNull<c_void>;

/// `name` as a C string, if it ends with its only NUL.
pub(crate) const fn c_name(name: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(name.as_bytes()) {
        Ok(name) => name,
        // No symbol has this name, so nothing is found.
        Err(_) => c"",
    }
}

/// The callback that gets the name of each definition at its first use.
pub(crate) static AT_FIRST_USE: OnceLock<fn(&CStr)> = OnceLock::new();

/// The next definition of one symbol, looked up at its first use. It does not store the name, which most never
/// need.
pub(crate) struct Next {
    is_found: AtomicBool,
    address: AtomicPtr<c_void>,
}

impl Next {
    pub(crate) const fn new() -> Next {
        Next::instead(ptr::null_mut())
    }

    /// `instead`: what [`Next::callable`] returns until the definition has been looked up.
    pub(crate) const fn instead(instead: *mut c_void) -> Next {
        Next { is_found: AtomicBool::new(false), address: AtomicPtr::new(instead) }
    }

    /// The offset of [`Next::callable`], for entry points that call it directly.
    #[cfg(target_arch = "x86_64")]
    pub(crate) const CALLABLE: usize = offset_of!(Next, address);

    /// The definition if it was looked up before, otherwise the function to call instead.
    #[inline]
    pub(crate) fn callable(&self) -> *mut c_void {
        // Relaxed is enough: the code behind the address was mapped before any thread got here.
        self.address.load(Ordering::Relaxed)
    }

    /// Sets the definition.
    pub(crate) fn is_at(&self, address: Address) {
        self.address.store(address.as_ptr(), Ordering::Relaxed);
        // Pairs with the Acquire in `get`: a thread that sees it sees the address.
        self.is_found.store(true, Ordering::Release);
    }

    /// The definition; none when no loaded object has one.
    #[inline]
    pub(crate) fn get(&self, name: &CStr) -> Option<Address> {
        self.found().or_else(|| self.look_up(name))
    }

    /// The definition, if it was looked up before.
    #[inline]
    pub(crate) fn found(&self) -> Option<Address> {
        if self.is_found.load(Ordering::Acquire) { NonNull::new(self.callable()) } else { None }
    }

    #[cold]
    pub(crate) fn look_up(&self, name: &CStr) -> Option<Address> {
        if let Some(tell) = AT_FIRST_USE.get() {
            tell(name);
        }
        let address = next(name)?;
        self.is_at(address);
        Some(address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symbol_that_nobody_has_is_not_found() {
        assert_eq!(next(c"gyan_no_such_symbol"), None);
        assert_eq!(Next::new().get(c"gyan_no_such_symbol"), None);
    }
}
