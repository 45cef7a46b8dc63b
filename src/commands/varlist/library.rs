//! The one place where the command touches MPI: a separate process opens an MPI library and libgyan.so, and
//! calls the one symbol by which libgyan.so lists it.

#![allow(unsafe_code)]

use std::error::Error as _;
use std::ffi::{CString, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};

use crate::error::Error;

const NAME_IT: &str = "name the libmpi.so of an MPI with --mpi";

/// Lists the MPI library `mpi` into `output`, with `libgyan`. Returns the exit code of this process; if it is
/// not 0, the reason was printed to stderr.
pub(crate) fn list(
    libgyan: &Path,
    mpi: &Path,
    before_init: bool,
    output: &Path,
) -> Result<u8, Error> {
    type GyanList = unsafe extern "C" fn(*const c_char, c_int) -> c_int;
    let cannot = |path: &Path, error: &libloading::Error| {
        let text = error.source().map_or_else(|| error.to_string(), ToString::to_string);
        let own = format!("{}: ", path.display());
        let text = text.strip_prefix(&own).unwrap_or(&text).to_owned();
        Error::new(path.display(), text, NAME_IT)
    };
    let flags = RTLD_NOW | RTLD_GLOBAL;
    // SAFETY: every MPI program has its MPI library run these initialisers; this process does nothing else.
    let library =
        unsafe { Library::open(Some(mpi), flags) }.map_err(|error| cannot(mpi, &error))?;
    // SAFETY: only asks whether there is such a symbol.
    if unsafe { library.get::<*const ()>(c"MPI_Init".to_bytes_with_nul()) }.is_err() {
        return Err(Error::new(
            mpi.display(),
            "defines no MPI_Init, so it is not an MPI library",
            NAME_IT,
        ));
    }
    // SAFETY: libgyan.so does nothing when it is loaded.
    let gyan = unsafe { Library::open(Some(libgyan), RTLD_NOW) }
        .map_err(|error| cannot(libgyan, &error))?;
    // SAFETY: this symbol of libgyan.so has this type.
    let list = unsafe { gyan.get::<GyanList>(c"gyan_list".to_bytes_with_nul()) }
        .map_err(|error| cannot(libgyan, &error))?;
    let output = CString::new(output.as_os_str().as_bytes())
        .map_err(|error| Error::new("output", error, "name another file"))?;
    // SAFETY: the path is a C string, and MPI was loaded just now and not initialised.
    let code = unsafe { list(output.as_ptr(), c_int::from(before_init)) };
    // Neither library is closed: MPI libraries leave threads behind.
    std::mem::forget((library, gyan));
    Ok(u8::try_from(code).unwrap_or(crate::FAILED))
}
