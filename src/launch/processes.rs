//! The processes of this host, according to `/proc`: which are children of which, and are they still there?

use std::fs;

use rustix::process::{Pid, Signal, kill_process};

use super::keepers;

/// A process: its number may be given to another one later, but not with the same start.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct ProcessId {
    pub(crate) pid: Pid,
    /// In ticks since the machine started (proc(5)).
    pub(super) started: u64,
}

/// A process that has not ended.
pub(super) struct Process {
    pub(super) id: ProcessId,
    pub(super) name: String,
    /// None for the first process.
    pub(super) parent: Option<Pid>,
}

/// The processes whose parent is `pid`.
pub(crate) fn children(pid: Pid) -> Vec<ProcessId> {
    let children = all().into_iter().filter(|process| process.parent == Some(pid));
    children.map(|process| process.id).collect()
}

/// What a process has started, directly or through others, without keepers: those end by themselves, and write
/// profiles until then.
pub(crate) fn descendants(pid: Pid) -> Vec<ProcessId> {
    let all = all();
    let mut found: Vec<ProcessId> = Vec::new();
    let mut next = vec![pid];
    while let Some(parent) = next.pop() {
        for child in all.iter().filter(|process| process.parent == Some(parent)) {
            if child.name != keepers::NAME && !found.contains(&child.id) {
                found.push(child.id);
                next.push(child.id.pid);
            }
        }
    }
    found
}

/// Sends a signal to those that are still there. Returns whether there were any.
pub(crate) fn signal_all(processes: &[ProcessId], signal: Signal) -> bool {
    let there = still_there(processes);
    there.iter().fold(false, |any, process| any | kill_process(process.pid, signal).is_ok())
}

/// Those that have not ended.
pub(crate) fn still_there(processes: &[ProcessId]) -> Vec<ProcessId> {
    let lives = |of: &&ProcessId| {
        process(of.pid.as_raw_nonzero().get()).is_some_and(|process| process.id == **of)
    };
    processes.iter().filter(lives).copied().collect()
}

pub(super) fn all() -> Vec<Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| process(entry.file_name().to_str()?.parse().ok()?)).collect()
}

fn process(number: i32) -> Option<Process> {
    let stat = fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
    // The name, in parentheses, may contain anything; after it: state, parent, and the start as the 20th (proc(5)).
    let (front, fields) = stat.rsplit_once(") ")?;
    let name = front.split_once('(')?.1.to_owned();
    let fields: Vec<&str> = fields.split(' ').collect();
    if *fields.first()? == "Z" {
        return None;
    }
    let parent = Pid::from_raw(fields.get(1)?.parse().ok()?);
    let id = ProcessId { pid: Pid::from_raw(number)?, started: fields.get(19)?.parse().ok()? };
    Some(Process { id, name, parent })
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_child_of_a_child_is_found_and_ended() {
        let mut shell = Command::new("sh").args(["-c", "sleep 600; :"]).spawn().unwrap();
        let pid = Pid::from_child(&shell);
        let found = || descendants(rustix::process::getpid());
        while children(pid).is_empty() {
            std::thread::yield_now();
        }
        let [sleep] = children(pid)[..] else { panic!("one child") };
        assert!(found().contains(&sleep) && found().iter().any(|process| process.pid == pid));
        assert!(signal_all(&[sleep], Signal::KILL));
        shell.wait().unwrap();
        assert!(still_there(&[sleep]).is_empty());
        assert!(!signal_all(&[sleep], Signal::KILL));
    }
}
