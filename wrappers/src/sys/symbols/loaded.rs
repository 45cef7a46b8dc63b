//! Definitions in the objects that are loaded.
//!
//! Usually found with `dlsym(RTLD_NEXT)`, so that a second preloaded tool after gyan still sees the call. A
//! program that opens libmpi with `RTLD_LOCAL` (mpi4py, Julia) hides it from that; then the loaded objects are
//! searched one by one: by symbol, not by file name, and never at load time. The first that has one comes first
//! from then on.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, OnceLock};

use super::Address;
use crate::sys::elf_objects;
use crate::sys::foreign::foreign;
use crate::sys::locks::held;

/// The object with definitions that `RTLD_NEXT` does not see. Never set while the loader is called: it holds
/// locks of its own.
static HIDDEN: OnceLock<LoadedObject> = OnceLock::new();

/// The next definitions that were found. The answer for a name never changes, whatever is loaded later: a tool that
/// got gyan's entry point for the function behind it would be called by that in turn. Never locked while the loader
/// is called.
static KNOWN: Mutex<Vec<(CString, usize)>> = Mutex::new(Vec::new());

/// The C library's `dlsym`, or that of the next preloaded tool: gyan has one, too (`entry::dlsym`).
#[cfg(target_arch = "x86_64")]
pub(crate) fn real_dlsym() -> *mut c_void {
    static REAL: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
    let known = REAL.load(Ordering::Relaxed);
    if !known.is_null() {
        return known;
    }
    let versions = [c"GLIBC_2.34", c"GLIBC_2.2.5"].into_iter();
    let find = |version: &CStr| {
        // SAFETY: both are C strings. RTLD_NEXT takes the calling object from the return address.
        unsafe { libc::dlvsym(libc::RTLD_NEXT, c"dlsym".as_ptr(), version.as_ptr()) }
    };
    let found = versions.map(find).find(|found| !found.is_null()).unwrap_or_default();
    REAL.store(found, Ordering::Relaxed);
    found
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn real_dlsym() -> *mut c_void {
    libc::dlsym as *mut c_void
}

/// `dlsym` as without gyan, asked by gyan.
#[inline(never)]
pub(crate) fn dlsym(handle: *mut c_void, name: &CStr) -> Option<Address> {
    let real = NonNull::new(real_dlsym())?;
    let real = foreign!(real, unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void);
    // SAFETY: `name` is a C string. RTLD_NEXT takes the calling object from the return address, which is in
    // this one. A handle that is none is an error that the C library reports.
    NonNull::new(unsafe { real(handle, name.as_ptr()) })
}

/// `dlclose` as without gyan.
pub(crate) fn dlclose(handle: *mut c_void) -> c_int {
    static REAL: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
    if REAL.load(Ordering::Relaxed).is_null()
        && let Some(found) = dlsym(libc::RTLD_NEXT, c"dlclose")
    {
        REAL.store(found.as_ptr(), Ordering::Relaxed);
    }
    let Some(real) = NonNull::new(REAL.load(Ordering::Relaxed)) else { return -1 };
    // A handle that is none is an error that the C library reports.
    foreign!(real, extern "C" fn(*mut c_void) -> c_int)(handle)
}

/// The next definition of `name` after this object, or the one in any other loaded object.
pub(crate) fn next(name: &CStr) -> Option<Address> {
    let known = || {
        let known = held(&KNOWN);
        let (_, address) = known.iter().find(|(known, _)| known.as_c_str() == name)?;
        NonNull::new(*address as *mut c_void)
    };
    known().or_else(|| {
        let hidden = || HIDDEN.get().and_then(|object| object.find(name));
        let found = dlsym(libc::RTLD_NEXT, name).or_else(hidden).or_else(|| in_any_object(name))?;
        // Another thread may have been first.
        known().or_else(|| {
            let mut known = held(&KNOWN);
            known.push((name.to_owned(), found.as_ptr() as usize));
            Some(found)
        })
    })
}

/// The definition of `name` that the program itself would see.
pub(crate) fn default(name: &CStr) -> Option<Address> {
    dlsym(libc::RTLD_DEFAULT, name)
}

/// The program found a definition at this address, in an object that `RTLD_NEXT` may not see.
pub(crate) fn is_hidden_with(address: Address) {
    if HIDDEN.get().is_none()
        && let Some(object) = LoadedObject::holding(address)
    {
        _ = HIDDEN.set(object);
    }
}

/// Whether another libgyan.so is found before this one, as where a site loads one and the user another: then that one counts
/// the calls.
pub(crate) fn is_behind_another_gyan() -> bool {
    let Some(first) = default(c"gyan_keeper") else { return false };
    let mut is_here = false;
    elf_objects::each(&mut |object| {
        is_here |= object.is_own() && object.holds(first.as_ptr() as usize);
    });
    !is_here
}

/// The object that this code is in.
pub(crate) fn own() -> Option<&'static LoadedObject> {
    static OWN: OnceLock<LoadedObject> = OnceLock::new();
    if OWN.get().is_none() {
        _ = OWN.set(NonNull::new(next as *mut c_void).and_then(LoadedObject::holding)?);
    }
    OWN.get()
}

/// A loaded object.
#[derive(Clone)]
pub(crate) struct LoadedObject {
    /// The file that it was loaded from.
    pub(crate) path: CString,
    /// The loader's handle, once a definition was looked for. Never closed: that could unload the library early.
    handle: OnceLock<usize>,
}

impl LoadedObject {
    /// The object that holds `address`.
    pub(crate) fn holding(address: Address) -> Option<LoadedObject> {
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
        Some(LoadedObject::at(path.to_owned()))
    }

    fn at(path: CString) -> LoadedObject {
        LoadedObject { path, handle: OnceLock::new() }
    }

    /// The definition of `name` in this object or in its dependencies.
    pub(crate) fn find(&self, name: &CStr) -> Option<Address> {
        if self.handle.get().is_none() {
            _ = self.handle.set(self.open()?.as_ptr() as usize);
        }
        dlsym(ptr::with_exposed_provenance_mut(*self.handle.get()?), name)
    }

    /// The same of an object that the program may unload later.
    pub(crate) fn look_for(&self, name: &CStr) -> Option<Address> {
        let handle = self.open()?;
        let found = dlsym(handle.as_ptr(), name);
        dlclose(handle.as_ptr());
        found
    }

    fn open(&self) -> Option<Address> {
        // SAFETY: with RTLD_NOLOAD nothing is loaded and no initialiser runs; the path is a C string.
        NonNull::new(unsafe {
            libc::dlopen(self.path.as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD)
        })
    }
}

/// The definition of `name` in the first loaded object, other than this one, that has its own.
#[cold]
fn in_any_object(name: &CStr) -> Option<Address> {
    let here = own()?;
    let mut paths: Vec<CString> = Vec::new();
    elf_objects::each(&mut |object| {
        if !object.name.is_empty() {
            paths.push(object.name.to_owned());
        }
    });
    paths.into_iter().filter(|path| *path != here.path).find_map(|path| {
        let object = LoadedObject::at(path);
        let address = object.look_for(name)?;
        // A handle also searches the object's dependencies; their turn comes later.
        let is_there = LoadedObject::holding(address)?.path == object.path;
        let found = if is_there { object.find(name) } else { None };
        if found.is_some() {
            _ = HIDDEN.set(object);
        }
        found
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symbol_of_the_c_library_is_found_with_its_object() {
        let address = next(c"getpid").unwrap();
        let object = LoadedObject::holding(address).unwrap();
        assert!(object.path.to_string_lossy().contains("libc"));
        assert!(object.find(c"getpid").is_some());
        assert_eq!(in_any_object(c"getpid"), Some(address));
    }
}
