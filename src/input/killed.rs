//! Is the process of a live file still running? The file itself does not say.

use std::fs;
use std::time::SystemTime;

use gyan_results::{Ending, Whose};

/// If the clock was set since then, it is off by less.
const TOLERANCE_S: f64 = 2.0;
/// `USER_HZ`, the unit of times in `/proc`: 100 on every processor with MPI on Linux.
const TICKS_PER_SECOND: f64 = 100.0;

/// How a rank without a profile ended. `gone`: the keeper of its host saw its process end.
pub(crate) fn ending(whose: &Whose, gone: bool) -> Ending {
    if whose.end.how != Ending::Running {
        return whose.end.how;
    }
    if gone {
        return Ending::Killed;
    }
    if this_host() != whose.host {
        Ending::Unknown
    } else if is_there(whose) {
        Ending::Running
    } else {
        Ending::Killed
    }
}

/// The name of this host, as libgyan.so records it.
pub(crate) fn this_host() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().to_owned()
}

/// Whether the process is running; a later one may have the same id.
fn is_there(whose: &Whose) -> bool {
    let Some(age_s) = age_s(whose.pid) else { return false };
    let Ok(started) = humantime::parse_rfc3339(&whose.job.started) else { return true };
    let since = SystemTime::now().duration_since(started).unwrap_or_default();
    age_s + TOLERANCE_S >= since.as_secs_f64()
}

/// How long a process has been running.
fn age_s(pid: u32) -> Option<f64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The program's name, in parentheses, may contain anything.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    // A zombie has ended.
    if fields.next()? == "Z" {
        return None;
    }
    let started: f64 = fields.nth(18)?.parse().ok()?;
    let uptime = fs::read_to_string("/proc/uptime").ok()?;
    let uptime: f64 = uptime.split_ascii_whitespace().next()?.parse().ok()?;
    Some(uptime - started / TICKS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_is_there_has_an_age() {
        let age = age_s(std::process::id()).unwrap();
        assert!((0.0..3600.0).contains(&age), "{age}");
        assert_eq!(age_s(u32::MAX), None);
    }
}
