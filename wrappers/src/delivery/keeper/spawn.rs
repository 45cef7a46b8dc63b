//! How does a rank find the keeper of its host, or start it?
//!
//! All ranks of a job on a host know the same socket name. The one that can bind to it starts the keeper, which
//! gets the listening end; then all of them connect. Nothing remains in any file system.
//!
//! The keeper is libgyan.so itself, as a program: the dynamic loader runs it from its own entry point. It has
//! nothing of the rank's: no memory, no file except the socket, no terminal. It is not a child of the rank, so
//! that a program which waits for its children never sees it.

use std::cell::LazyCell;
use std::ffi::{CString, OsStr, c_char, c_int, c_void};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr;
use std::slice;
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::{Pid, geteuid};

use super::messages::Socket;
use super::process;
use crate::config::launcher;
use crate::sys::{elf_objects, kernel_files, maps};

/// How long a rank tries to reach a keeper that another rank is starting.
const PATIENCE: Duration = Duration::from_secs(2);
/// How many ranks can wait to be accepted; the system may allow fewer.
const WAITING: i32 = 4096;
/// Data for the processes that start it.
const STACK: usize = 16 << 10;
/// Bytes at the beginning of an object, which tell it from others: headers and build id.
const PAGE: usize = 4096;
/// Limit on the id, so that the name is not longer than the system allows.
const ID_BYTES: usize = 64;

/// A connection to the keeper for the ranks of `job` on this host, which is started if there is none.
/// `directory` identifies the keeper to others.
pub(super) fn reach(job: &str, directory: &Path) -> io::Result<Socket> {
    let name = name_of(job)?;
    let until = Instant::now() + PATIENCE;
    loop {
        let socket = new_socket()?;
        let waits = match rustix::net::connect(&socket, &name) {
            Ok(()) => return is_ours(&socket).map(|()| Socket(socket)),
            // Nobody listens, or not yet.
            Err(Errno::CONNREFUSED) => match start(&name, directory) {
                // It listens already.
                Ok(()) => false,
                Err(error) if error.kind() == ErrorKind::AddrInUse => true,
                Err(error) => return Err(error),
            },
            // Too many wait.
            Err(Errno::AGAIN | Errno::INTR) => true,
            Err(error) => return Err(error.into()),
        };
        if Instant::now() > until {
            return Err(ErrorKind::TimedOut.into());
        }
        if waits {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

fn new_socket() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?)
}

/// The name of the socket, in the abstract namespace (unix(7)).
fn name_of(job: &str) -> io::Result<SocketAddrUnix> {
    let (user, sum) = (geteuid().as_raw(), crc32fast::hash(job.as_bytes()));
    let short: String = job.chars().take(ID_BYTES).filter(char::is_ascii_graphic).collect();
    let name = format!("gyan-{}-{user}-{sum:08x}-{short}", env!("CARGO_PKG_VERSION"));
    Ok(SocketAddrUnix::new_abstract_name(name.as_bytes())?)
}

/// Anybody can bind to a name, but a rank's data is only for its own user.
fn is_ours(socket: &OwnedFd) -> io::Result<()> {
    if peer_of(socket)?.uid == geteuid().as_raw() {
        Ok(())
    } else {
        Err(ErrorKind::PermissionDenied.into())
    }
}

/// Whether orphans become children of this process: it is PID 1 of a container, or asked for them. A keeper would be
/// one of them, and a program that waits for all its children would wait for the keeper.
pub(super) fn takes_orphans() -> bool {
    let mut is_subreaper: c_int = 0;
    // SAFETY: prctl(2) with room for the answer.
    unsafe { libc::prctl(libc::PR_GET_CHILD_SUBREAPER, &raw mut is_subreaper) };
    std::process::id() == 1 || is_subreaper != 0
}

/// The process at the other end of a connection. Its id is 0 if it is not visible from here, in a namespace of its
/// own: rustix has no value for that.
pub(super) fn peer_of(socket: &impl AsFd) -> io::Result<libc::ucred> {
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut size = libc::socklen_t::try_from(size_of_val(&peer)).unwrap_or(0);
    // SAFETY: getsockopt(2) with room for the credentials and their size.
    let code = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &raw mut size,
        )
    };
    if code == 0 { Ok(peer) } else { Err(io::Error::last_os_error()) }
}

/// Starts the keeper, unless another rank does.
fn start(name: &SocketAddrUnix, directory: &Path) -> io::Result<()> {
    if takes_orphans() {
        return Err(ErrorKind::Unsupported.into());
    }
    let files = Files::of_this_process()?;
    let listening = new_socket()?;
    rustix::net::bind(&listening, name)?;
    rustix::net::listen(&listening, WAITING)?;
    run(&files, &listening, directory)
}

/// The files that make up the keeper.
struct Files {
    loader: PathBuf,
    library: PathBuf,
}

impl Files {
    fn of_this_process() -> io::Result<Files> {
        let maps = LazyCell::new(|| kernel_files::bytes("/proc/self/maps").unwrap_or_default());
        let file = |address: usize| {
            loaded_from(address).or_else(|| file_at(&maps, address)).ok_or(ErrorKind::NotFound)
        };
        // SAFETY: getauxval(3) has no preconditions.
        let [base, entry] =
            [libc::AT_BASE, libc::AT_ENTRY].map(|what| unsafe { libc::getauxval(what) });
        // In a program that was started through the loader, the loader has no separate mapping to find.
        let loader = if base == 0 { entry } else { base };
        let library = file(process::main as *const () as usize)?;
        // A program that contains gyan (`static`) cannot be run as a keeper.
        if fs::read_link("/proc/self/exe").is_ok_and(|program| program == library) {
            return Err(ErrorKind::Unsupported.into());
        }
        Ok(Files { loader: file(usize::try_from(loader).unwrap_or(0))?, library })
    }
}

/// The file of the object at an address, as the loader knows it. None where that may be another file by now, and for the
/// program.
fn loaded_from(address: usize) -> Option<PathBuf> {
    let mut found = None;
    elf_objects::each(&mut |object| {
        if object.holds(address) {
            found = Some((OsStr::from_bytes(object.name.to_bytes()).into(), object.range().start));
        }
    });
    let (path, start): (PathBuf, usize) = found?;
    if !path.is_absolute() {
        return None;
    }
    let mut begins = [0; PAGE];
    File::open(&path).ok()?.read_exact(&mut begins).ok()?;
    // SAFETY: an object begins with a page of its file, which stays while it is loaded, and this one is.
    let loaded = unsafe { slice::from_raw_parts(ptr::with_exposed_provenance::<u8>(start), PAGE) };
    (begins == *loaded).then_some(path)
}

/// The file that is mapped at an address, by `/proc/self/maps`: a file of hundreds of lines, which the kernel makes for it.
fn file_at(maps: &[u8], address: usize) -> Option<PathBuf> {
    let part = maps::parts(maps).find(|part| part.range.contains(&address))?;
    let path = Path::new(OsStr::from_bytes(part.path?));
    path.is_file().then(|| path.to_owned())
}

/// Data for the two processes between this one and the keeper.
struct Command {
    path: CString,
    arguments: Vec<*const c_char>,
    environment: Vec<*const c_char>,
    listening: c_int,
    stack: Vec<u8>,
}

/// Runs the keeper as a process that is nobody's child, and returns once it has started.
fn run(files: &Files, listening: &OwnedFd, directory: &Path) -> io::Result<()> {
    let text =
        |bytes: &[u8]| CString::new(bytes).map_err(|_| io::Error::from(ErrorKind::InvalidInput));
    let words = [
        text(process::NAME.as_bytes())?,
        text(files.library.as_os_str().as_bytes())?,
        text(listening.as_raw_fd().to_string().as_bytes())?,
        text(directory.as_os_str().as_bytes())?,
    ];
    // The C library may be found through it.
    let path = launcher("LD_LIBRARY_PATH").map(|path| format!("LD_LIBRARY_PATH={path}"));
    let path = path.map(|path| text(path.as_bytes())).transpose()?;
    let mut command = Command {
        path: text(files.loader.as_os_str().as_bytes())?,
        arguments: words.iter().map(|word| word.as_ptr()).chain([ptr::null()]).collect(),
        environment: path.iter().map(|path| path.as_ptr()).chain([ptr::null()]).collect(),
        listening: listening.as_raw_fd(),
        stack: vec![0; STACK],
    };
    let mut stack = vec![0; STACK];
    let held = AllSignals::hold();
    // SAFETY: the process runs `between` on its own stack, in this process's memory, while this thread is
    // suspended until it has ended (CLONE_VFORK). No handler runs there, since all signals are blocked. It
    // sends no signal when it ends, and only a wait for such processes would see it (clone(2)).
    let child = unsafe {
        libc::clone(
            between,
            top_of(&mut stack),
            libc::CLONE_VM | libc::CLONE_VFORK,
            ptr::from_mut(&mut command).cast(),
        )
    };
    let error = io::Error::last_os_error();
    drop(held);
    let child = Pid::from_raw(child).ok_or(error)?;
    let mut status = 0;
    // SAFETY: wait4(2) for the process above, with room for how it ended.
    while unsafe { libc::waitpid(child.as_raw_nonzero().get(), &raw mut status, libc::__WCLONE) }
        < 0
        && io::Error::last_os_error().kind() == ErrorKind::Interrupted
    {}
    if status == 0 { Ok(()) } else { Err(io::Error::other("a process cannot be started")) }
}

/// The highest address of a stack, aligned as the processors require.
fn top_of(stack: &mut [u8]) -> *mut c_void {
    let end = stack.as_mut_ptr_range().end;
    // SAFETY: at most 15 bytes before the end of it.
    unsafe { end.sub(end.addr() % 16) }.cast()
}

/// Starts the keeper's process and ends, so that the keeper is nobody's child.
extern "C" fn between(command: *mut c_void) -> c_int {
    // SAFETY: it belongs to `run`, which is suspended.
    let of = unsafe { &mut *command.cast::<Command>() };
    let stack = top_of(&mut of.stack);
    // SAFETY: as for the process that this is.
    let child = unsafe {
        libc::clone(
            become_keeper,
            stack,
            libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD,
            command,
        )
    };
    c_int::from(child < 0)
}

extern "C" fn become_keeper(command: *mut c_void) -> c_int {
    // SAFETY: it belongs to `run`, which is suspended.
    let command = unsafe { &*command.cast::<Command>() };
    // SAFETY: setsid(2): signals to the job's process group must not reach it.
    unsafe { libc::setsid() };
    // SAFETY: fcntl(2) of a descriptor that is open; this process has a table of its own.
    unsafe { libc::fcntl(command.listening, libc::F_SETFD, 0) };
    // SAFETY: execve(2) with lists of strings that end with null.
    unsafe {
        libc::execve(
            command.path.as_ptr(),
            command.arguments.as_ptr(),
            command.environment.as_ptr(),
        )
    };
    127
}

/// While this lives, all signals are blocked in this thread.
struct AllSignals(libc::sigset_t);

impl AllSignals {
    fn hold() -> AllSignals {
        // SAFETY: a set is plain bytes, which sigfillset(3) fills in.
        let mut all = unsafe { std::mem::zeroed() };
        // SAFETY: room for a set.
        unsafe { libc::sigfillset(&raw mut all) };
        let mut before = all;
        // SAFETY: pthread_sigmask(3) with a set that was made and room for one.
        unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, &raw mut before) };
        AllSignals(before)
    }
}

impl Drop for AllSignals {
    fn drop(&mut self) {
        // SAFETY: pthread_sigmask(3) with the set that it gave.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, ptr::null_mut()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_found_by_an_address_in_it() {
        let maps = fs::read("/proc/self/maps").unwrap();
        let here = file_at(&maps, a_file_is_found_by_an_address_in_it as *const () as usize);
        assert_eq!(here.unwrap(), std::env::current_exe().unwrap());
        assert_eq!(file_at(&maps, 1), None);
        // The loader does not name the program, but the C library.
        assert_eq!(loaded_from(a_file_is_found_by_an_address_in_it as *const () as usize), None);
        let library = libc::getpid as *const () as usize;
        assert_eq!(
            loaded_from(library).unwrap().canonicalize().unwrap(),
            file_at(&maps, library).unwrap()
        );
        let files = Files::of_this_process();
        // These tests are a program that contains gyan.
        assert_eq!(files.err().unwrap().kind(), ErrorKind::Unsupported);
    }

    #[test]
    fn names_differ_by_job_and_have_room() {
        let name = |job: &str| name_of(job).unwrap().abstract_name().unwrap().to_vec();
        assert_ne!(name("12.0"), name("12.1"));
        let long = "x".repeat(500);
        assert_ne!(name(&format!("{long}1")), name(&format!("{long}2")));
    }
}
