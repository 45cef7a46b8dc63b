//! The processes on this host that write what ranks know: is one still at work for a run directory?

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// What libgyan.so calls them.
const NAME: &str = "gyan-keeper";
/// How often they are looked for.
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);
/// How long one takes, at most, to write what is known now.
const NEWS: Duration = Duration::from_millis(500);

/// Waits until none is at work for a run directory, for so long at most. Whether there is none.
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

/// Has those that are at work for a run directory write what is known now, and waits a moment for it.
pub(crate) fn write_now(directory: &Path) {
    let keepers = keepers_of(directory);
    let changed = || fs::metadata(directory).and_then(|directory| directory.modified()).ok();
    let before = changed();
    for keeper in &keepers {
        // It may have ended in this moment; a keeper only notes the signal.
        let _ = kill_process(*keeper, Signal::USR1);
    }
    let begun = Instant::now();
    while !keepers.is_empty() && changed() == before && begun.elapsed() < NEWS {
        thread::sleep(BETWEEN_LOOKS);
    }
}

fn keepers_of(directory: &Path) -> Vec<Pid> {
    let Ok(directory) = fs::canonicalize(directory) else { return Vec::new() };
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes.filter_map(|entry| keeper(&entry.path(), &directory)).collect()
}

/// The number of a process that is a keeper for this directory, which is the last word of its command line.
fn keeper(process: &Path, directory: &Path) -> Option<Pid> {
    let number = process.file_name()?.to_str()?.parse().ok()?;
    if fs::read_to_string(process.join("comm")).ok()?.trim_end() != NAME {
        return None;
    }
    let line = fs::read(process.join("cmdline")).ok()?;
    let last = line.strip_suffix(b"\0")?.rsplit(|byte| *byte == 0).next()?;
    let last = PathBuf::from(String::from_utf8_lossy(last).into_owned());
    (fs::canonicalize(last).ok()? == directory).then(|| Pid::from_raw(number)).flatten()
}
