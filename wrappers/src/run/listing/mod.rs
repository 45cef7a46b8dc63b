//! What does this MPI library tell about itself? Every variable, category and event, for
//! `gyan varlist`.
//!
//! Either the command opens this object beside an MPI library and calls [`gyan_list`], or a program
//! is started with `GYAN_LIST` set, and the listing takes its place at `MPI_Init`. In both cases
//! the process belongs to the listing and ends with it.

mod items;

pub(crate) use items::Items;

use std::ffi::{CStr, c_char, c_int};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::ptr;

use gyan_results::{Moment, Tool, VARIABLES_SCHEMA, Variables};

use crate::calls::containment::contain;
use crate::delivery::job;
use crate::mpi::abi::Library;
use crate::mpi::libraries::advice;
use crate::mpi::libraries::monitoring;
use crate::mpi::libraries::quirks;
use crate::mpi::tool::Mpit;
use crate::run::in_front;
use crate::sys::foreign::foreign;
use crate::sys::notice;

/// The listing was written.
const DONE: c_int = 0;
/// The listing was not written; the reason is on stderr.
const FAILED: c_int = 2;

/// Lists the MPI library in this process into the file `path` and finalises it; before `MPI_Init`
/// when `before_init` is not 0, otherwise after. The one symbol that the `gyan` command calls.
///
/// Returns 0 when the file was written, otherwise 2 with a line on stderr.
///
/// # Safety
/// `path` is a C string, and an MPI library that nobody has initialised is loaded.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn gyan_list(path: *const c_char, before_init: c_int) -> c_int {
    let listed = contain("listing", || {
        // SAFETY: the caller's promise.
        let path = unsafe { CStr::from_ptr(path) };
        list_library(Path::new(path.to_str().map_err(|error| error.to_string())?), before_init != 0)
    });
    code_of(listed)
}

/// The exit code of a listing. Prints why one failed, unless a panic was contained.
fn code_of(listed: Option<Result<(), String>>) -> c_int {
    match listed {
        Some(Ok(())) => DONE,
        Some(Err(why)) => {
            notice::say(&why);
            FAILED
        }
        None => FAILED,
    }
}

fn list_library(path: &Path, before_init: bool) -> Result<(), String> {
    let library = Library::find()
        .map_err(|what| format!("{what}; it is not an MPI library, or not one that gyan knows"))?;
    let mpit = init_mpit(&library)?;
    let mut earlier = None;
    if !before_init {
        earlier = early(&library, &mpit);
        let init = library.function(c"PMPI_Init").ok_or("the library has no MPI_Init")?;
        // MPI 4.1, 11.2.1; both arguments may be null.
        let init = foreign!(init, extern "C-unwind" fn(*mut c_int, *mut *mut *mut c_char) -> c_int);
        let code = init(ptr::null_mut(), ptr::null_mut());
        if code != 0 {
            return Err(format!("MPI_Init failed ({})", library.abi.error(code)));
        }
    }
    let moment = if before_init { Moment::BeforeInit } else { Moment::AfterInit };
    write_and_end(&library, &mpit, moment, earlier, path)
}

fn init_mpit(library: &Library) -> Result<Mpit, String> {
    let path = library.path();
    Mpit::init(library, library.abi.thread_multiple())
        .map_err(|failure| format!("{path}: {failure}; it cannot be listed"))?
        .ok_or_else(|| format!("{path}: has no MPI_T interface (MPI 3.0); use a newer MPI"))
}

/// Ends a process whose library cannot be listed: the program itself must not run.
pub(crate) fn give_up() -> ! {
    // SAFETY: the user asked for it with `gyan varlist`; the failure was reported.
    unsafe { libc::_exit(FAILED) }
}

/// What the library tells before `MPI_Init`, for a listing after it; empty when it cannot be asked. Without
/// handles on performance variables, which are read afterwards.
pub(crate) fn early(library: &Library, mpit: &Mpit) -> Option<Items> {
    items::list(library, mpit, Moment::BeforeInit, false).ok()
}

/// Takes the place of the program: lists, ends MPI, and ends the process with code 0. Called where the program
/// initialised MPI. `earlier` is what [`early`] returned before that.
pub(crate) fn take_over(
    library: &Library,
    mpit: &Mpit,
    moment: Moment,
    earlier: Option<Items>,
    path: &Path,
) -> ! {
    let listed = contain("listing", || write_and_end(library, mpit, moment, earlier, path));
    let code = code_of(listed);
    // SAFETY: the user asked for it with `gyan varlist`: the program itself must not run.
    unsafe { libc::_exit(code) }
}

/// Writes the listing, only on the first rank, and ends MPI if it was initialised.
fn write_and_end(
    library: &Library,
    mpit: &Mpit,
    moment: Moment,
    earlier: Option<Items>,
    path: &Path,
) -> Result<(), String> {
    let rank = match moment {
        Moment::BeforeInit => 0,
        Moment::AfterInit => library.world().map_or(0, |(rank, _)| rank),
    };
    let written = if rank == 0 {
        list(library, mpit, moment, earlier)
            .map_err(|error| format!("the library cannot be listed: {error}; no process to fork"))
            .and_then(|variables| write(path, &variables))
    } else {
        Ok(())
    };
    if moment == Moment::AfterInit {
        if quirks::drops_mpit(library.implementation) {
            mpit.finalize();
        }
        if let Some(finalize) = library.function(c"PMPI_Finalize") {
            // MPI 4.1, 11.2.2; MPI was initialised in this process.
            foreign!(finalize, extern "C-unwind" fn() -> c_int)();
        }
    }
    written
}

fn write(path: &Path, variables: &Variables) -> Result<(), String> {
    // Under a temporary name first: if there are several processes, each puts a complete file in place.
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(format!(".{}", std::process::id()));
    let temporary = PathBuf::from(temporary);
    let text = serde_json::to_vec(variables).unwrap_or_default();
    fs::write(&temporary, text)
        .and_then(|()| fs::rename(&temporary, path))
        .map_err(|error| format!("{}: {error}; make room", path.display()))
}

/// Everything that the library tells.
fn list(
    library: &Library,
    mpit: &Mpit,
    moment: Moment,
    earlier: Option<Items>,
) -> io::Result<Variables> {
    let level = match moment {
        Moment::BeforeInit => None,
        Moment::AfterInit => library.query_thread(),
    };
    let level = level.and_then(|level| library.abi.thread_level(level));
    let mut variables = Variables {
        schema: VARIABLES_SCHEMA.into(),
        tool: Tool::gyan(),
        host: job::host(),
        mpi: library.described(level.unwrap_or("unknown")),
        listed: moment,
        cvars: Vec::new(),
        pvars: Vec::new(),
        categories: Vec::new(),
        has_events: mpit.api.events().is_ok(),
        events: Vec::new(),
        sources: Vec::new(),
        switches: Vec::new(),
        in_front: in_front::tools().iter().filter_map(in_front::Tool::at_start).collect(),
        advice: Vec::new(),
    };
    let mut items = items::list(library, mpit, moment, true)?;
    if let Some(earlier) = earlier {
        items.complete(earlier);
    }
    items.into_variables(&mut variables);
    if moment == Moment::AfterInit {
        variables.switches = monitoring::switches(library, &variables.cvars, &variables.pvars);
        variables.advice = advice::advice(library.implementation, variables.pvars.len(), &[]);
    }
    Ok(variables)
}
