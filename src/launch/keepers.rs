//! The keepers on this host, which write what ranks know: is one still working for a run directory?

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Their process name, as libgyan.so sets it.
pub(super) const NAME: &str = "gyan-keeper";
/// How often to look for them.
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);
/// The longest time that one takes to write what it knows.
const NEWS: Duration = Duration::from_millis(500);

/// Waits, up to a limit, until none is working for a run directory. Returns whether there is none.
pub(crate) fn have_ended(directory: &Path, patience: Duration) -> bool {
    let begun = Instant::now();
    while !keepers_of(directory).is_empty() {
        if begun.elapsed() > patience {
            return false;
        }
        thread::sleep(BETWEEN_LOOKS);
    }
    true
}

/// Has those that are working for a run directory write what they know, and waits a moment for it.
pub(crate) fn write_now(directory: &Path) {
    let keepers = keepers_of(directory);
    let changed = || fs::metadata(directory).and_then(|directory| directory.modified()).ok();
    let before = changed();
    for keeper in &keepers {
        // It may have ended at this moment; a keeper only notes the signal.
        let _ = kill_process(*keeper, Signal::USR1);
    }
    let begun = Instant::now();
    while !keepers.is_empty() && changed() == before && begun.elapsed() < NEWS {
        thread::sleep(BETWEEN_LOOKS);
    }
}

/// The run directories that one on this host is working for.
pub(crate) fn directories() -> Vec<PathBuf> {
    keepers().map(|(_, directory)| directory).collect()
}

fn keepers_of(directory: &Path) -> Vec<Pid> {
    let Ok(directory) = fs::canonicalize(directory) else { return Vec::new() };
    keepers().filter(|(_, of)| *of == directory).map(|(keeper, _)| keeper).collect()
}

fn keepers() -> impl Iterator<Item = (Pid, PathBuf)> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes.filter_map(|entry| keeper(&entry.path()))
}

/// The id of a process if it is a keeper, and its directory, the last word of its command line.
fn keeper(process: &Path) -> Option<(Pid, PathBuf)> {
    let number = process.file_name()?.to_str()?.parse().ok()?;
    if fs::read_to_string(process.join("comm")).ok()?.trim_end() != NAME {
        return None;
    }
    let line = fs::read(process.join("cmdline")).ok()?;
    let last = line.strip_suffix(b"\0")?.rsplit(|byte| *byte == 0).next()?;
    let last = PathBuf::from(String::from_utf8_lossy(last).into_owned());
    Pid::from_raw(number).zip(fs::canonicalize(last).ok())
}
