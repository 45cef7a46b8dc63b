//! Which C library runs this command?

#![allow(unsafe_code)]

use std::ffi::{CStr, c_char};

unsafe extern "C" {
    fn gnu_get_libc_version() -> *const c_char;
}

/// Its version, such as `2.36`.
pub(crate) fn version() -> String {
    // SAFETY: gnu_get_libc_version(3) has no preconditions.
    let version = unsafe { gnu_get_libc_version() };
    // SAFETY: it returns a string that is never freed.
    unsafe { CStr::from_ptr(version) }.to_string_lossy().into_owned()
}
