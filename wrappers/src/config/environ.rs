//! How can an environment variable be set while other threads may be reading the environment?
//!
//! The C library's `setenv` may free the list that they are reading. Here the list is replaced by a new one,
//! and the old one is never freed.

use std::ffi::{CStr, CString, c_char};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

unsafe extern "C" {
    /// environ(7): strings `name=value`, then null.
    static environ: AtomicPtr<*mut c_char>;
}

/// Sets a variable. A text with a NUL in it sets nothing.
pub(super) fn set(name: &str, value: &str) {
    let Ok(entry) = CString::new(format!("{name}={value}")) else { return };
    // SAFETY: the variable is aligned and always there, and all other accesses read or write one word.
    let list = unsafe { &environ };
    let mut entries: Vec<*mut c_char> = entries(list.load(Ordering::Acquire)).collect();
    entries.retain(|other| !is_of(*other, name));
    entries.extend([entry.into_raw(), ptr::null_mut()]);
    // Release: a thread that sees the list also sees its content.
    list.store(entries.leak().as_mut_ptr(), Ordering::Release);
}

/// The strings of a list, if there is one.
fn entries(list: *mut *mut c_char) -> impl Iterator<Item = *mut c_char> {
    let places = (0..).take_while(move |_| !list.is_null()).map(move |at| list.wrapping_add(at));
    // SAFETY: the list continues until a null is found. Only a thread that sets variables at this moment could
    // free it. That would be during the program's initialisation of MPI, where it would race with the MPI
    // library's own `getenv`, too.
    places.map(|place| unsafe { place.read() }).take_while(|entry| !entry.is_null())
}

/// Whether a string of the list is the variable `name`.
fn is_of(entry: *mut c_char, name: &str) -> bool {
    // SAFETY: a string of the list, as above.
    let entry = unsafe { CStr::from_ptr(entry) };
    entry.to_bytes().strip_prefix(name.as_bytes()).is_some_and(|rest| rest.starts_with(b"="))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::{env, thread};

    use super::*;

    #[test]
    fn a_variable_is_set_and_set_again_while_others_are_read() {
        static DONE: AtomicBool = AtomicBool::new(false);
        let path = env::var_os("PATH");
        let reads = thread::spawn(move || {
            while !DONE.load(Ordering::Relaxed) {
                assert_eq!(env::var_os("PATH"), path);
            }
        });
        for value in ["1", "two", "", "a=b"] {
            set("GYANTESTENVIRON", value);
            set("GYANTESTENVIRON2", "other");
            assert_eq!(env::var("GYANTESTENVIRON").as_deref(), Ok(value));
            let number = env::vars().filter(|(name, _)| name == "GYANTESTENVIRON").count();
            assert_eq!(number, 1);
        }
        DONE.store(true, Ordering::Relaxed);
        reads.join().unwrap();
        set("GYANTESTENVIRON", "n\0o");
        assert_eq!(env::var("GYANTESTENVIRON").as_deref(), Ok("a=b"));
    }
}
