//! What is in the registers and on the stack of another process? It is stopped (ptrace(2)) only while they are copied.
//!
//! `PTRACE_SEIZE` and `PTRACE_INTERRUPT` send no signal, and should this process end halfway, the kernel lets the other one go
//! on. A signal that arrives meanwhile is handed on.

use std::fs;
use std::io::{self, ErrorKind, IoSliceMut};
use std::os::unix::fs::MetadataExt;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::ptrace::{self, Options};
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;
use rustix::process::{WaitOptions, geteuid, waitpid};

/// How long to wait for a thread to stop: it does not while it waits for a disk, for instance.
const PATIENCE: Duration = Duration::from_millis(500);
/// For so long the processor is not given away: a thread stops within microseconds.
const SPINS: Duration = Duration::from_micros(200);
const BETWEEN_TRIES: Duration = Duration::from_micros(50);
/// `__WALL`: without it, Linux before 4.7 waits for main threads only.
const ANY_THREAD: WaitOptions = WaitOptions::from_bits_retain(0x4000_0000);
/// Below the stack pointer, functions that call no other may have data (System V ABI, 3.2.2).
pub(super) const RED_ZONE: u64 = 128;

/// The registers that say where a thread is, and how it got there.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Registers {
    pub(super) pc: u64,
    pub(super) sp: u64,
    pub(super) fp: u64,
    /// Where a function returns to that calls no other; only on processors that have it.
    pub(super) lr: u64,
}

#[derive(Debug, Default)]
pub(super) struct Copied {
    pub(super) registers: Registers,
    /// The address of the first byte of `stack`.
    pub(super) begin: u64,
    pub(super) stack: Vec<u8>,
    /// Where the memory of the stack ends.
    pub(super) end: u64,
    /// How long it was stopped at most.
    pub(super) stopped: Duration,
}

impl Copied {
    pub(super) fn word(&self, address: u64) -> Option<u64> {
        let at = usize::try_from(address.checked_sub(self.begin)?).ok()?;
        let bytes = self.stack.get(at..at.checked_add(8)?)?;
        bytes.try_into().ok().map(u64::from_le_bytes)
    }

    /// Whether an address is on the stack, above what was copied.
    pub(super) fn is_beyond(&self, address: u64) -> bool {
        self.word(address).is_none() && (self.begin..self.end).contains(&address)
    }
}

/// Copies registers and stack of a thread. `end_of`: where the memory at an address ends.
pub(super) fn copy(
    thread: u32,
    end_of: impl Fn(u64) -> Option<u64>,
    bytes_at_most: usize,
) -> io::Result<Copied> {
    let mut stack = Vec::with_capacity(bytes_at_most.min(256 << 10));
    let clock = Instant::now();
    let stopped = Stopped::stop(thread)?;
    let registers = registers(stopped.pid)?;
    let begin = registers.sp.saturating_sub(RED_ZONE);
    let end = end_of(registers.sp).unwrap_or(registers.sp);
    stack.resize(usize::try_from(end.saturating_sub(begin)).unwrap_or(0).min(bytes_at_most), 0);
    let copied = read(thread, begin, &mut stack);
    drop(stopped);
    let stopped = clock.elapsed();
    stack.truncate(copied.unwrap_or(0));
    Ok(Copied { registers, begin, stack, end, stopped })
}

pub(super) fn memory(pid: u32, at: u64, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    let copied = read(pid, at, &mut bytes)?;
    bytes.truncate(copied);
    Ok(bytes)
}

/// Returns how many bytes there were.
fn read(pid: u32, at: u64, into: &mut [u8]) -> io::Result<usize> {
    let base = usize::try_from(at).map_err(io::Error::other)?;
    let from = [RemoteIoVec { base, len: into.len() }];
    Ok(process_vm_readv(id(pid)?, &mut [IoSliceMut::new(into)], &from)?)
}

fn id(pid: u32) -> io::Result<Pid> {
    i32::try_from(pid).map(Pid::from_raw).map_err(io::Error::other)
}

/// A thread that is stopped, until this is dropped.
struct Stopped {
    pid: Pid,
    /// The signal that it was about to get, or 0.
    signal: i32,
}

impl Stopped {
    fn stop(pid: u32) -> io::Result<Stopped> {
        let pid = id(pid)?;
        ptrace::seize(pid, Options::empty())?;
        let mut thread = Stopped { pid, signal: 0 };
        ptrace::interrupt(pid)?;
        let begun = Instant::now();
        loop {
            let waited = rustix::process::Pid::from_raw(pid.as_raw());
            if let Some((_, status)) = waitpid(waited, WaitOptions::NOHANG | ANY_THREAD)? {
                let Some(signal) = status.stopping_signal() else {
                    return Err(io::Error::from_raw_os_error(nix::libc::ESRCH));
                };
                // The stop that was asked for is an event, no signal.
                let is_event = status.as_raw() >> 16 != 0;
                thread.signal = if is_event { 0 } else { signal };
                return Ok(thread);
            }
            match begun.elapsed() {
                waited if waited > PATIENCE => return Err(ErrorKind::TimedOut.into()),
                waited if waited > SPINS => thread::sleep(BETWEEN_TRIES),
                _ => thread::yield_now(),
            }
        }
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        let signal = nix::libc::c_long::from(self.signal);
        // nix has no real-time signals. SAFETY: ptrace(2) lets the thread go on and uses no memory of this process.
        #[allow(unsafe_code)]
        unsafe {
            nix::libc::ptrace(nix::libc::PTRACE_DETACH, self.pid.as_raw(), 0_usize, signal);
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn registers(pid: Pid) -> io::Result<Registers> {
    let all = ptrace::getregs(pid)?;
    Ok(Registers { pc: all.rip, sp: all.rsp, fp: all.rbp, lr: 0 })
}

#[cfg(target_arch = "aarch64")]
fn registers(pid: Pid) -> io::Result<Registers> {
    let all = ptrace::getregs(pid)?;
    let [.., fp, lr] = all.regs;
    Ok(Registers { pc: all.pc, sp: all.sp, fp, lr })
}

/// Why a process has no stack, and what to do about it.
pub(super) fn why_not(pid: u32, error: &io::Error) -> String {
    if error.kind() == ErrorKind::TimedOut {
        return "it did not stop: it waits in the kernel, as for a disk".into();
    }
    match error.raw_os_error() {
        Some(nix::libc::ESRCH | nix::libc::ENOENT) => "it has just ended".into(),
        Some(nix::libc::EPERM | nix::libc::EACCES) => forbidden(pid),
        Some(nix::libc::ENOSYS) => {
            "the container forbids ptrace: start it with --cap-add SYS_PTRACE".into()
        }
        _ => crate::error::reason(error),
    }
}

/// Who forbids it.
fn forbidden(pid: u32) -> String {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let tracer = status.lines().find_map(|line| line.strip_prefix("TracerPid:")).map(str::trim);
    if let Some(tracer) = tracer.filter(|tracer| *tracer != "0") {
        return format!("a debugger has it: process {tracer}");
    }
    let owner = fs::metadata(format!("/proc/{pid}")).map(|process| process.uid());
    if owner.is_ok_and(|owner| owner != geteuid().as_raw()) {
        return "it is another user's: run gyan as that user, or as root".into();
    }
    let scope = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    match scope.trim() {
        "" | "0" => "the container forbids ptrace: start it with --cap-add SYS_PTRACE".into(),
        scope => format!(
            "the system forbids it (kernel.yama.ptrace_scope is {scope}): run gyan as root, or let root run \
             sysctl kernel.yama.ptrace_scope=0"
        ),
    }
}
