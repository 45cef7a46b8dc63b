//! Definitions in the objects that are loaded.
//!
//! Usually found with `dlsym(RTLD_NEXT)`, so that a second preloaded tool after gyan still sees the call. A
//! program that opens libmpi with `RTLD_LOCAL` (mpi4py) hides it from that; then the loaded objects are
//! searched one by one: by symbol, not by file name, and never at load time.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr::NonNull;

use super::Address;

/// The next definition of `name` after this object, or the one in any other loaded object.
#[inline(never)]
pub(crate) fn next(name: &CStr) -> Option<Address> {
    // SAFETY: `name` is a C string. RTLD_NEXT takes the calling object from the return address, which is in
    // this one.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    NonNull::new(found).or_else(|| in_any_object(name))
}

/// The definition of `name` that the program itself would see.
pub(crate) fn default(name: &CStr) -> Option<Address> {
    // SAFETY: `name` is a C string.
    NonNull::new(unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) })
}

/// A loaded object.
#[derive(Clone)]
pub(crate) struct Object {
    /// The file that it was loaded from.
    pub(crate) path: CString,
}

impl Object {
    /// The object that holds `address`.
    pub(crate) fn holding(address: Address) -> Option<Object> {
        let mut info = MaybeUninit::<libc::Dl_info>::zeroed();
        // SAFETY: dladdr accepts any address and fills `info` when it returns other than 0.
        let found = unsafe { libc::dladdr(address.as_ptr(), info.as_mut_ptr()) };
        // SAFETY: all zeroes is a valid Dl_info.
        let info = unsafe { info.assume_init() };
        if found == 0 || info.dli_fname.is_null() {
            return None;
        }
        // SAFETY: dladdr gave a C string that lives as long as the object is loaded.
        let path = unsafe { CStr::from_ptr(info.dli_fname) };
        Some(Object { path: path.to_owned() })
    }

    /// The definition of `name` in this object or in its dependencies.
    pub(crate) fn find(&self, name: &CStr) -> Option<Address> {
        // SAFETY: with RTLD_NOLOAD nothing is loaded and no initialiser runs; the path is a C
        // string. The handle is never closed: that could unload the library early.
        let handle =
            unsafe { libc::dlopen(self.path.as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD) };
        let handle = NonNull::new(handle)?;
        // SAFETY: the handle is open, `name` is a C string.
        NonNull::new(unsafe { libc::dlsym(handle.as_ptr(), name.as_ptr()) })
    }
}

/// The definition of `name` in the first loaded object, other than this one, that has its own.
#[cold]
fn in_any_object(name: &CStr) -> Option<Address> {
    let here = NonNull::new(next as *mut c_void).and_then(Object::holding)?;
    let mut paths: Vec<CString> = Vec::new();
    // SAFETY: `collect_path` gets back the pointer to `paths`, which outlives the iteration.
    unsafe { libc::dl_iterate_phdr(Some(collect_path), (&raw mut paths).cast()) };
    paths.into_iter().filter(|path| *path != here.path).find_map(|path| {
        let address = Object { path: path.clone() }.find(name)?;
        // A handle also searches the object's dependencies; their turn comes later.
        (Object::holding(address)?.path == path).then_some(address)
    })
}

unsafe extern "C" fn collect_path(
    info: *mut libc::dl_phdr_info,
    _size: usize,
    paths: *mut c_void,
) -> c_int {
    // SAFETY: dl_iterate_phdr passes a valid `info`.
    let name: *const c_char = unsafe { (*info).dlpi_name };
    // SAFETY: the caller passed a pointer to its Vec and uses it for nothing else meanwhile.
    let paths = unsafe { &mut *paths.cast::<Vec<CString>>() };
    if !name.is_null() {
        // SAFETY: the name of a loaded object is a C string.
        let name = unsafe { CStr::from_ptr(name) };
        if !name.is_empty() {
            paths.push(name.to_owned());
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symbol_of_the_c_library_is_found_with_its_object() {
        let address = next(c"getpid").unwrap();
        let object = Object::holding(address).unwrap();
        assert!(object.path.to_string_lossy().contains("libc"));
        assert!(object.find(c"getpid").is_some());
        assert_eq!(in_any_object(c"getpid"), Some(address));
    }
}
