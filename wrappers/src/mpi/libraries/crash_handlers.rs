//! Whose handlers of a crash only print something and let the process end? gyan notes a crash before them. Before a handler of
//! any other it notes nothing: the program may go on after that.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::{self, NonNull};

use crate::sys::symbols::LoadedObject;

/// The beginning of the file's name, and what its handler does.
const LIBRARIES: &[(&str, &str)] = &[
    // opal/util/stacktrace.c: opal_util_register_stackhandlers
    (
        "libopen-pal.so",
        "prints a stack, and has the signal's default action restored (SA_RESETHAND)",
    ),
    // libgfortran/runtime/compile_options.c: backtrace_handler
    ("libgfortran.so", "prints a stack, restores the default action and raises the signal again"),
    // src/ucs/debug/debug.c: ucs_error_signal_handler
    ("libucs.so", "prints a stack, and raises the signal again"),
];

/// Whether gyan may note a crash before the handler at this address.
pub(crate) fn goes_before(handler: usize) -> bool {
    let address = NonNull::new(ptr::with_exposed_provenance_mut(handler));
    let Some(object) = address.and_then(LoadedObject::holding) else { return false };
    let path = Path::new(OsStr::from_bytes(object.path.as_bytes()));
    let name = path.file_name().unwrap_or_default().as_bytes();
    LIBRARIES.iter().any(|(library, _)| name.starts_with(library.as_bytes()))
}
