//! What does `gyan doctor` learn from a process? Which program it is, with which libraries, and which MPI
//! functions it calls. There is one file per program, open only while a line is written: whatever the program
//! does with descriptors, processes and signals does not matter.

use std::ffi::{CStr, c_int, c_void};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use gyan_results::{ProcessNote, ProcessStart};
use rustix::fs::{Mode, OFlags};

use crate::config;
use crate::delivery::job;
use crate::sys::at_exit;
use crate::sys::clock;
use crate::sys::elf_objects;
use crate::sys::symbols;

/// The file of this program.
static FILE: OnceLock<PathBuf> = OnceLock::new();

/// Records which program this is, and from now on what it calls and how it ends.
pub(crate) fn begin(directory: &Path) {
    // Process ids are reused, and one process can become many programs.
    let (host, id) = (job::host(), std::process::id());
    let path = directory.join(format!("{host}-{id}-{}", clock::now()));
    let program = program();
    let (objects, gyan) = objects(&program);
    let start = ProcessStart {
        program,
        arguments: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
        host,
        settings: config::written(),
        objects,
        gyan,
    };
    if write(&path, OFlags::CREATE | OFlags::EXCL, &ProcessNote::Loaded(start))
        && FILE.set(path).is_ok()
        && symbols::AT_FIRST_USE.set(called).is_ok()
    {
        at_exit::call(ended);
    }
}

/// A function of MPI comes through libgyan.so.
fn called(name: &CStr) {
    // The only function that gyan itself looks up this way: `abi::is_initialized`.
    if name != c"PMPI_Initialized" {
        note(&ProcessNote::Called(name.to_string_lossy().into_owned()));
    }
}

extern "C-unwind" fn ended(_code: c_int, _: *mut c_void) {
    note(&ProcessNote::Ended(objects(&program()).0));
}

fn note(note: &ProcessNote) {
    if let Some(path) = FILE.get() {
        write(path, OFlags::APPEND, note);
    }
}

/// Adds a line to the file, in one system call. Returns whether that worked.
fn write(path: &Path, flags: OFlags, note: &ProcessNote) -> bool {
    let Ok(mut line) = serde_json::to_vec(note) else { return false };
    line.push(b'\n');
    let flags = flags | OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    // Direct system calls are not cancellation points.
    rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)
        .and_then(|file| rustix::io::write(file, &line))
        .is_ok()
}

fn program() -> String {
    fs::read_link("/proc/self/exe").unwrap_or_default().to_string_lossy().into_owned()
}

/// The objects loaded into the program, and which of them holds gyan.
fn objects(program: &str) -> (Vec<String>, Option<usize>) {
    let (mut objects, mut gyan) = (Vec::new(), None);
    elf_objects::each(&mut |object| {
        if object.is_own() {
            gyan = Some(objects.len());
        }
        let name = object.name.to_string_lossy();
        objects.push(if name.is_empty() { program.to_owned() } else { name.into_owned() });
    });
    (objects, gyan)
}
