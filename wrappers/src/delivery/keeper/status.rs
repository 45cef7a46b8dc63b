//! How did the process of a rank end? It is not a child of the keeper, so wait(2) does not tell.

use std::ffi::{c_int, c_uint};
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Pid;

use crate::sys::kernel_files::{stat_fields, text};

/// How long it may take until that is known.
const PATIENCE: Duration = Duration::from_millis(500);
const BETWEEN_LOOKS: Duration = Duration::from_millis(1);

/// What wait(2) would say of a process that has ended; none if the system does not tell. Until its parent has waited for
/// it, proc(5) says it to its user, and after that `ioctl_pidfd(2)`, since Linux 6.15.
pub(super) fn status_of(process: &OwnedFd, pid: Pid) -> Option<c_int> {
    let begun = Instant::now();
    loop {
        let of_zombie = status_of_zombie(pid);
        // If it has not been waited for by now, no other process has its number.
        let is_waited_for = is_waited_for(process);
        let status = if is_waited_for { status_in_system(process) } else { of_zombie };
        if status.is_some() || is_waited_for || begun.elapsed() > PATIENCE {
            return status;
        }
        thread::sleep(BETWEEN_LOOKS);
    }
}

/// The last field of its line in `/proc`.
fn status_of_zombie(pid: Pid) -> Option<c_int> {
    let stat = text(format!("/proc/{}/stat", pid.as_raw_nonzero()))?;
    let mut fields = stat_fields(&stat)?;
    (fields.next()? == "Z").then(|| fields.next_back()?.parse().ok()).flatten()
}

fn is_waited_for(process: &OwnedFd) -> bool {
    let number = process.as_raw_fd();
    // SAFETY: pidfd_send_signal(2) of an open descriptor; signal 0 only asks whether the process is there.
    let code = unsafe {
        libc::syscall(libc::SYS_pidfd_send_signal, number, 0, ptr::null::<libc::siginfo_t>(), 0)
    };
    code != 0
}

/// `struct pidfd_info` of linux/pidfd.h, in its first version.
#[repr(C)]
#[derive(Default)]
struct PidfdInfo {
    mask: u64,
    control_group: u64,
    ids: [c_uint; 11],
    exit_code: c_int,
}

/// `PIDFD_INFO_EXIT`.
const EXIT: u64 = 1 << 3;
/// `PIDFD_GET_INFO`: `_IOWR(0xff, 11, struct pidfd_info)`.
const GET_INFO: usize = 3 << 30 | size_of::<PidfdInfo>() << 16 | 0xff << 8 | 0x0b;

/// What the system keeps of a process while a descriptor of it is open.
fn status_in_system(process: &OwnedFd) -> Option<c_int> {
    let mut info = PidfdInfo { mask: EXIT, ..PidfdInfo::default() };
    let number = process.as_raw_fd();
    // SAFETY: ioctl_pidfd(2) of an open descriptor, with room for what the request's size says.
    let code = unsafe { libc::syscall(libc::SYS_ioctl, number, GET_INFO, &raw mut info) };
    (code == 0 && info.mask & EXIT != 0).then_some(info.exit_code)
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    use rustix::process::{PidfdFlags, pidfd_open};

    use super::*;

    #[test]
    fn the_signal_of_a_process_that_nobody_waited_for_is_known() {
        let mut shell = Command::new("sh").args(["-c", "kill -SEGV $$"]).spawn().unwrap();
        let pid = Pid::from_child(&shell);
        let process = pidfd_open(pid, PidfdFlags::empty()).unwrap();
        while status_of_zombie(pid).is_none() {
            thread::sleep(BETWEEN_LOOKS);
        }
        let status = status_of(&process, pid).unwrap();
        assert_eq!(libc::WTERMSIG(status), libc::SIGSEGV);
        assert_eq!(shell.wait().unwrap().signal(), Some(libc::SIGSEGV));
        assert!(is_waited_for(&process));
        // Linux before 6.15 does not know it any more.
        let later = status_of(&process, pid);
        assert!(later.is_none_or(|later| later == status), "{later:?}");
    }
}
